"""Makes `reference` and `strategies` importable by the test files; sets up BLAS and hypothesis."""

import os
import signal
import sys
import threading
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the reference's matrices are too small for threads

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# A shell that starts the tests in the background makes them ignore Ctrl-C, which some tests simulate.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Fixed or random examples: `pytest --hypothesis-profile=random`, `ci/test random`.
settings.register_profile(
    "sl1max", deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("random", settings.get_profile("sl1max"), derandomize=False, print_blob=True)
settings.load_profile("sl1max")


def pytest_terminal_summary(terminalreporter):
    """Print how many of scikit-learn's estimator checks ran, and with what outcome."""
    outcomes = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
    counts = {
        outcome: sum("::test_scikit_learn_checks" in report.nodeid for report in terminalreporter.getreports(outcome))
        for outcome in outcomes
    }
    if any(counts.values()):
        found = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        terminalreporter.write_line(f"scikit-learn's estimator checks: {found}")
