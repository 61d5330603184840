"""The bars that sl1max is held to beside itself are measured, each with its ratio."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "asv_bench"))

pytest.importorskip("sklearn")
bars = pytest.importorskip("bars")


def test_table(capsys):
    bars.main(["--quick", "--runs", "1"])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["what", "seconds", "sl1max", "ratio", "bar"] and len(rows) == 14
    for what, other, ours, ratio, bar in rows[2:]:
        assert what and float(bar) > 0
        assert float(ratio) == pytest.approx(float(other) / float(ours), abs=0.06)


def test_times_take_turns():
    calls = []
    times = bars.seconds_of({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2)
    assert calls == ["a", "b", "a", "b"] and set(times) == {"a", "b"}
