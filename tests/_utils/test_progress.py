"""Progress on a terminal."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

import sl1max
from sl1max._utils.progress import Bar, FitProgress, Lines, format_seconds, way_done


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def drawn(self):
        """What was written over what."""
        return [line.rstrip() for line in re.split(r"[\r\n]", self.getvalue()) if line.strip()]


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sl1max._utils.progress.sys", SimpleNamespace(stderr=stream))
    monkeypatch.setenv("COLUMNS", "100")
    return stream


@pytest.mark.parametrize(("label_mode", "distribution"), [("independent", "conditional"), ("independent", "joint")])
def test_bar_of_many_problems(terminal, label_mode, distribution):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (80, 6)), rng.integers(0, 4, 80)
    sl1max.fit(X, y, label_mode=label_mode, distribution=distribution, verbose=1)
    last = terminal.drawn()[-1]
    assert re.fullmatch(r"sl1max: 4/4 classes \[#{24}\] gap \d\.\de-\d\d, 0:00 left", last)
    assert terminal.getvalue().endswith("\n")


def test_bar_of_one_problem(terminal):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (80, 6)), rng.integers(0, 4, 80)
    sl1max.fit(X, y, verbose=1)
    assert terminal.drawn()[-1].startswith("sl1max: all classes [#")
    sl1max.fit(X, y)
    assert len(terminal.drawn()) < 5


def test_time_left(terminal, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("sl1max._utils.progress.time.monotonic", lambda: now[0])
    bar = Bar(["a", "b"])
    bar.show(FitProgress("a", 1, 1.0, 1e-1, 1e-5), "running", False)
    now[0] = 60.0
    bar.show(FitProgress("a", 5, 1.0, 1e-3, 1e-5), "running", False)  # half of the first of two
    assert terminal.drawn()[-1] == f"sl1max: 0/2 classes [{'#' * 6}{'-' * 18}] gap 1.0e-03, 3:00 left"
    now[0] = 100.0
    bar.show(FitProgress("a", 9, 1.0, 1e-6, 1e-5), "converged", True)
    assert terminal.drawn()[-1] == f"sl1max: 1/2 classes [{'#' * 12}{'-' * 12}] gap 1.0e-06, 1:40 left"


def test_the_line_ends_when_a_fit_fails(terminal):
    def fail(progress):
        raise RuntimeError("from the callback")

    X, y = np.eye(6), [0, 1, 2] * 2
    with pytest.raises(RuntimeError):
        sl1max.fit(X, y, verbose=1, callback=fail)
    assert terminal.getvalue().endswith("\n")


def test_way_done():
    assert way_done(1e-1, 1e-3, 1e-5) == pytest.approx(0.5)
    assert way_done(1e-1, 1.0, 1e-5) == 0
    assert way_done(1e-1, 1e-9, 1e-5) == 1
    assert way_done(np.inf, 1e-3, 1e-5) == way_done(1e-6, 1e-7, 1e-5) == way_done(1.0, 0.0, 1e-5) == 0


def test_format_seconds():
    assert [format_seconds(s) for s in (0, 59.6, 61, 3661)] == ["0:00", "1:00", "1:01", "1:01:01"]


def test_time_left_by_effort(terminal, monkeypatch):
    """The first of the classes takes most of the time; those of an earlier call count as done, not as time."""
    now = [0.0]
    monkeypatch.setattr("sl1max._utils.progress.time.monotonic", lambda: now[0])
    bar = Bar(["a", "b", "c", "d"], [6.0, 1.0, 1.0, 50.0], done=[3])
    now[0] = 60.0
    bar.show(FitProgress("a", 9, 1.0, 1e-6, 1e-5), "converged", True, 6.0)
    assert terminal.drawn()[-1] == f"sl1max: 2/4 classes [{'#' * 18}{'-' * 6}] gap 1.0e-06, 0:20 left"


def test_a_bar_of_nothing(terminal):
    Bar(["a"], [1.0], done=[0]).close()
    assert terminal.drawn() == []


def test_lines_of_thousands_of_classes(capsys, monkeypatch):
    """One a second, and the last."""
    now = [0.0]
    monkeypatch.setattr("sl1max._utils.progress.time.monotonic", lambda: now[0])
    lines = Lines(list(range(4000)))
    for c in range(4000):
        now[0] += 0.01
        lines.show(FitProgress(c, 3, 1.0, 1e-6, 1e-5), "converged", True)
    printed = capsys.readouterr().err.splitlines()
    assert 35 <= len(printed) <= 41
    assert re.fullmatch(
        r"sl1max: 1\d\d/4000 classes, 0:\d\d left; class \d+: 3 iterations, objective 1, gap .*", printed[0]
    )
    assert printed[-1].startswith("sl1max: 4000/4000 classes, 0:00 left; class 3999")


def test_progress_goes_on_where_a_checkpoint_ended(terminal, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (80, 6)), rng.integers(0, 4, 80)
    options = {"label_mode": "independent", "checkpoint": tmp_path / "fit.checkpoint"}
    sl1max.fit(X, y, **options)
    sl1max.fit(X, y, verbose=1, **options)
    assert terminal.drawn() == []
