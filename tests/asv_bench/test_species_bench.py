"""The comparison of species with the Java program: its table, on made data and with a log."""

import runpy
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "asv_bench" / "species.py"


@pytest.fixture(scope="module")
def bench():
    return runpy.run_path(str(BENCH))


def test_table_on_made_data(bench, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    bench["main"](["--tol", "1e-5", "--plot", str(tmp_path / "species.png")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["species", "made0", "made1", "made2", "all"]
    assert all(float(line.split()[-1]) <= 1e-5 for line in lines[1:4])
    assert (tmp_path / "species.png").stat().st_size > 1000


def test_times_and_gains_come_from_the_log(bench, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("500: time = 1.5 loss = 8.8\nResulting gain: 0.25\n20: time = 0.5 loss = 2\nResulting gain: -1e-3\n")
    assert list(bench["read_log"](log)) == [[1.5, 0.5], [0.25, -0.001]]
