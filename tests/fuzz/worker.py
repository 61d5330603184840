"""Runs the cases of one campaign in this process and reports them as lines of JSON."""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np


def find_campaign(name):
    """The campaign of a module in this folder."""
    return importlib.import_module(f"fuzz.{name}").CAMPAIGN


def run_case(name, seed, folder=None):
    """One case in this process; returns what came of it."""
    if folder is None:
        with tempfile.TemporaryDirectory() as folder:
            return run_case(name, seed, folder)
    campaign = find_campaign(name)
    try:
        return campaign.set_up(Path(folder))(np.random.default_rng(seed))
    finally:
        campaign.clean_up(Path(folder))


def work(name, first_seed, seconds, n_cases, folder):
    """Cases with rising seeds until the time or the number is over."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a case prints is not part of the report
    faulthandler.enable()
    campaign = find_campaign(name)
    faulthandler.dump_traceback_later(campaign.time_limit, exit=True)
    run = campaign.set_up(Path(folder))
    end = time.monotonic() + seconds
    for seed in range(first_seed, first_seed + n_cases):
        if time.monotonic() > end:
            break
        report.write(json.dumps({"begin": seed}) + "\n")
        faulthandler.dump_traceback_later(campaign.time_limit, exit=True)
        try:
            line = {"outcome": run(np.random.default_rng(seed))}
        except BaseException as error:
            lines = traceback.format_exception(error)
            line = {"finding": f"{type(error).__name__}: {error}", "trace": "".join(lines)}
        report.write(json.dumps(line) + "\n")
    faulthandler.cancel_dump_traceback_later()
    report.write(json.dumps({"end": True}) + "\n")
    report.flush()
    os._exit(0)  # threads of a case may be left


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
