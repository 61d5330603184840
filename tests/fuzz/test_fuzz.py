"""The runner of the campaigns."""

import io
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from fuzz import CAMPAIGNS, disk, stand_in
from fuzz.runner import MOST_FINDINGS, Runner, format_table, python_path


def run(campaigns, **options):
    stream = io.StringIO()
    tallies = Runner(options.pop("seed"), stream).run(campaigns, options.pop("seconds", 60), n_jobs=1, **options)
    return tallies, stream.getvalue()


@pytest.mark.slow
def test_finding_is_printed_with_its_seed_and_command():
    (tally,), text = run({"stand_in": stand_in.CAMPAIGN}, seed=100, n_cases=2)
    assert tally.findings == [(101, "Finding: a digit of 1")]
    assert "FINDING stand_in 101: Finding: a digit of 1" in text
    assert "-m fuzz --case stand_in 101" in text
    assert tally.outcomes == {"fine": 1}


@pytest.mark.slow
def test_campaign_goes_on_after_a_crash_and_a_hang():
    (tally,), text = run({"stand_in": stand_in.CAMPAIGN}, seed=100, n_cases=6)
    assert [seed for seed, _ in tally.findings] == [101, 102, 103]
    assert tally.findings[1][1] == "the process died: SIGABRT"
    assert tally.findings[2][1] == "no end within the time limit"
    assert tally.outcomes == {"fine": 3}
    assert "stand_in.py" in text  # where it was


@pytest.mark.slow
def test_campaign_ends_after_many_findings():
    (tally,), _ = run({"stand_in": stand_in.CAMPAIGN}, seed=1, n_cases=10 * MOST_FINDINGS)
    assert len(tally.findings) == MOST_FINDINGS


@pytest.mark.slow
def test_campaign_ends_in_time():
    (tally,), _ = run({"stand_in": stand_in.CAMPAIGN}, seed=4, seconds=1e-9)
    assert tally.n_cases <= 1


def test_table_counts_outcomes_and_skips():
    campaign = replace(stand_in.CAMPAIGN, obstacle=lambda: "no disk here")
    tallies, _ = run({"stand_in": campaign}, seed=0)
    assert "skipped: no disk here" in format_table(tallies, 0)


@pytest.mark.slow
def test_command_runs_one_case():
    command = [sys.executable, "-P", "-m", "fuzz", "--case"]
    environment = os.environ | {"PYTHONPATH": python_path()}
    fine = subprocess.run([*command, "stand_in", "100"], capture_output=True, text=True, env=environment)
    assert (fine.returncode, fine.stdout) == (0, "fine\n")
    found = subprocess.run([*command, "stand_in", "101"], capture_output=True, text=True, env=environment)
    assert found.returncode == 1 and "Finding: a digit of 1" in found.stderr


@pytest.mark.slow
@pytest.mark.skipif(disk.obstacle() is not None, reason="cannot mount a disk")
def test_command_removes_the_disk_of_its_case(tmp_path):
    environment = os.environ | {"PYTHONPATH": python_path(), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-P", "-m", "fuzz", "--case", "disk", "3"], check=True, env=environment)
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_first_cases_of_each_campaign(name):
    (tally,), text = run({name: CAMPAIGNS[name]}, seed=0, n_cases=5)
    assert not tally.findings, text
    assert tally.skipped or tally.n_cases == 5
