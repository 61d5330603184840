"""How the times of ci/bench bars are measured."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "asv_bench"))

pytest.importorskip("sklearn")
bars = pytest.importorskip("bars")


def test_times_take_turns():
    calls = []
    times = bars.seconds_of({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2)
    assert calls == ["a", "b", "a", "b"] and set(times) == {"a", "b"}
