"""Processor time of paths and fits on the WebKB pages: ``python -m webkb`` or ``ci/bench webkb``.

Writes docs/benchmarks/webkb.json, from which the README and the site take their figures. Times are medians of the runs.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # set before numpy is imported

import numpy as np
import scipy

import sl1max
from sl1max.datasets import fetch_webkb

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "webkb.json"
BETAS = np.geomspace(10, 0.2, 30)
MODELS = [
    ("conditional", "exclusive"),
    ("conditional", "independent"),
    ("joint", "exclusive"),
    ("joint", "independent"),
    ("class-conditional", "exclusive"),
]


def seconds(function, runs):
    """Median processor time of a call."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return round(statistics.median(times), 4)


def processor():
    """Name of the processor, where /proc has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def measure(runs):
    data = fetch_webkb()
    X, y, X_test, y_test = next(data.splits())
    labels = data.class_names[y]
    fits = []
    for distribution, label_mode in MODELS:
        options = {"distribution": distribution, "label_mode": label_mode}
        model = sl1max.fit(X, labels, **options)
        fits.append(
            {
                **options,
                "seconds": seconds(lambda: sl1max.fit(X, labels, **options), runs),  # noqa: B023
                "n_weights": int(model.weights.nnz),
                "error": round(float(np.mean(model.predict(X_test) != data.class_names[y_test])), 4),
            }
        )
    return {
        "surroundings": {
            "date": datetime.date.today().isoformat(),
            "machine": f"{processor()}, {os.cpu_count()} cores; one thread, processor time",
            "versions": f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
            f"sl1max {sl1max.__version__}",
            "runs": runs,
        },
        "shape": list(X.shape),
        "n_weights_possible": X.shape[1] * len(data.class_names),
        "n_betas": len(BETAS),
        "path_one_class": seconds(lambda: sl1max.path(X, labels == "student", BETAS), runs),
        "path_four_classes": seconds(lambda: sl1max.path(X, labels, BETAS, label_mode="independent"), runs),
        "fits": fits,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="repetitions of each measurement (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="JSON file (default: %(default)s)")
    arguments = parser.parse_args()
    found = measure(arguments.runs)
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
