"""Runs campaigns side by side, each in a process of its own, and counts what comes of the cases."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

MOST_FINDINGS = 20  # of a campaign, after which it ends
ALL = 2**40
RARE = 0.05  # of the cases: an outcome whose first seeds are shown
TESTS = Path(__file__).resolve().parents[1]


@dataclass
class Tally:
    """What came of the cases of a campaign."""

    name: str
    outcomes: Counter = field(default_factory=Counter)
    examples: dict = field(default_factory=dict)  # seeds by outcome
    findings: list = field(default_factory=list)  # (seed, message)
    seconds: float = 0.0
    skipped: str | None = None

    @property
    def n_cases(self) -> int:
        return self.outcomes.total() + len(self.findings)


def command_of(name, seed):
    """The command that runs one case again."""
    return f"PYTHONPATH={os.path.relpath(TESTS)} {os.path.relpath(sys.executable)} -P -m fuzz --case {name} {seed}"


def python_path():
    """That of this process, with the tests."""
    return os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))


class Runner:
    """Campaigns under way.

    Parameters
    ----------
    seed : int
        Of the first case of every campaign; the next ones follow.
    stream : text stream
        Takes the findings.
    """

    def __init__(self, seed, stream=sys.stdout):
        self._seed = seed
        self._stream = stream
        self._lock = threading.Lock()

    def run(self, campaigns, seconds, n_cases=None, n_jobs=None) -> list[Tally]:
        """Run campaigns for a number of seconds in all, or a number of cases each."""
        n_jobs = n_jobs or os.cpu_count() or 1
        able = {name: campaign for name, campaign in campaigns.items() if campaign.obstacle() is None}
        total = sum(campaign.share for campaign in able.values())
        parallel = max(min(n_jobs, len(able)), 1)

        def run_one(name):
            if name not in able:
                return Tally(name, skipped=campaigns[name].obstacle())
            time_of = ALL if n_cases else seconds * parallel * able[name].share / total
            return self._campaign(name, time_of, n_cases or ALL)

        with ThreadPoolExecutor(parallel) as pool:
            # The longest first, so that the processors are busy to the end.
            order = sorted(campaigns, key=lambda name: -campaigns[name].share)
            tallies = dict(zip(order, pool.map(run_one, order), strict=True))
        return [tallies[name] for name in campaigns]

    def _campaign(self, name, seconds, n_cases):
        """Cases of one campaign; a process that dies is a finding, and another one takes over."""
        tally, start, first = Tally(name), time.monotonic(), self._seed
        while first < self._seed + n_cases and len(tally.findings) < MOST_FINDINGS:
            left = start + seconds - time.monotonic()
            if left <= 0:
                break
            last = self._process(tally, first, left, self._seed + n_cases - first)
            if last is None:
                break
            first = last + 1
        tally.seconds = time.monotonic() - start
        return tally

    def _process(self, tally, first, seconds, n_cases):
        """Cases until a process ends; the seed it died at, or None if it ended well."""
        seed = first
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
            command = [sys.executable, "-P", "-m", "fuzz.worker", tally.name, str(first), str(seconds), str(n_cases)]
            process = subprocess.Popen(
                [*command, folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                env=os.environ | {"PYTHONPATH": python_path(), "OPENBLAS_NUM_THREADS": "1"}, start_new_session=True,
            )  # fmt: skip
            try:
                for line in process.stdout:
                    entry = json.loads(line)
                    seed = entry.get("begin", seed)
                    if "outcome" in entry:
                        tally.outcomes[entry["outcome"]] += 1
                        tally.examples.setdefault(entry["outcome"], []).append(seed)
                    elif "finding" in entry:
                        self._note(tally, seed, entry["finding"], entry["trace"])
                        if len(tally.findings) >= MOST_FINDINGS:
                            return None
                    elif "end" in entry:
                        return None
                code = process.wait()
                errors.seek(0)
                end = errors.read()[-4000:]
                what = signal.Signals(-code).name if code < 0 else f"exit status {code}"
                what = "no end within the time limit" if "Timeout (" in end else f"the process died: {what}"
                self._note(tally, seed, what, end)
                return seed
            finally:
                _end_group(process)

    def _note(self, tally, seed, message, details):
        message = " ".join(message.split())
        with self._lock:
            tally.findings.append((seed, message))
            alike = sum(message[:40] == other[:40] for _, other in tally.findings)
            if alike <= 2:
                print(f"\n{details.strip()}", file=self._stream)
            print(f"FINDING {tally.name} {seed}: {message[:500]}", file=self._stream)
            print(f"  {command_of(tally.name, seed)}", file=self._stream, flush=True)


def _end_group(process):
    """End a worker and the processes it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.stdout.close()
    process.wait()


def format_table(tallies, seed) -> str:
    """Counts of cases, outcomes and findings by campaign."""
    lines = [f"{'campaign':<12} {'cases':>8} {'findings':>8} {'seconds':>8}  outcomes (first seed {seed})"]
    for tally in tallies:
        if tally.skipped:
            lines.append(f"{tally.name:<12} {'-':>8} {'-':>8} {'-':>8}  skipped: {tally.skipped}")
            continue
        outcomes = ", ".join(f"{n} {what}" for what, n in tally.outcomes.most_common())
        lines.append(f"{tally.name:<12} {tally.n_cases:>8} {len(tally.findings):>8} {tally.seconds:>8.0f}  {outcomes}")
        for what, seeds in tally.examples.items():
            if len(seeds) < RARE * tally.n_cases:
                lines.append(f"{'':<12} {what}: seed {', '.join(map(str, seeds[:5]))}")
    n_cases, n_findings = sum(tally.n_cases for tally in tallies), sum(len(tally.findings) for tally in tallies)
    lines.append(f"{'total':<12} {n_cases:>8} {n_findings:>8}")
    return "\n".join(lines)
