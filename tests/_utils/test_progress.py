"""Progress on a terminal."""

import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import sl1max
from sl1max._utils import progress
from sl1max._utils.progress import FitProgress, Lines, Tally, format_seconds, make_display, way_done


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def drawn(self):
        """What was written over what."""
        return [line.rstrip() for line in re.split(r"[\r\n]", self.getvalue()) if line.strip()]


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    pytest.importorskip("tqdm")
    monkeypatch.setattr("sl1max._utils.progress.sys", SimpleNamespace(stderr=stream, modules=sys.modules))
    monkeypatch.setenv("COLUMNS", "150")
    return stream


def make_data():
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, (80, 6)), rng.integers(0, 4, 80)


@pytest.mark.parametrize("distribution", ["conditional", "joint"])
def test_bar_of_many_problems(terminal, distribution):
    X, y = make_data()
    sl1max.fit(X, y, label_mode="independent", distribution=distribution, verbose=1)
    last = terminal.drawn()[-1]
    state = r"4/4 classes, objective [\d.]+, gap \d\.\d\de-\d\d \(target \d\.\d\de-\d\d\)(, \d+ weights)?"
    assert re.fullmatch(rf"sl1max: 100%\|[#█]{{24}}\| {state}, 00:00 left", last)
    assert terminal.getvalue().endswith("\n")


def test_bar_of_one_problem(terminal):
    X, y = make_data()
    sl1max.fit(X, y, verbose=1)
    assert re.match(r"sl1max: 100%\|[#█]{24}\| all classes, objective ", terminal.drawn()[-1])
    n_lines = len(terminal.drawn())
    sl1max.fit(X, y)
    assert len(terminal.drawn()) == n_lines


def test_bar_shows_the_share_of_the_effort(terminal):
    bar = make_display(["a", "b"])
    bar.show(FitProgress("a", 1, 1.0, 1e-1, 1e-5), "running", False)
    bar.show(FitProgress("a", 5, 1.0, 1e-3, 1e-5), "running", False)  # half of the first of two
    assert bar._bar.n == pytest.approx(0.25)
    bar.show(FitProgress("a", 9, 1.0, 1e-6, 1e-5), "converged", True)
    assert bar._bar.n == pytest.approx(0.5)
    bar.close()


def test_without_tqdm_a_terminal_gets_lines(terminal, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    sl1max.fit(*make_data(), verbose=1)
    assert re.match(r"sl1max: all classes: \d+ iterations, objective [\d.]+, gap ", terminal.drawn()[-1])


def test_lines_show_the_number_of_weights(capsys):
    X, y = make_data()
    model = sl1max.fit(X, y, beta=0.01, verbose=1)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(f", {model.weights.nnz} weights, converged")


def test_callback_gets_the_number_of_weights():
    X, y = make_data()
    seen = []
    model = sl1max.fit(X, y, beta=0.01, callback=seen.append)
    assert seen[-1].n_nonzero == model.weights.nnz > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, 'label_mode="independent", which trains'),
        ({"label_mode": "independent"}, "n_jobs=-1"),
        ({"solver": "sequential"}, 'solver="auto"; label_mode'),
    ],
)
def test_a_long_fit_gives_advice_once(capsys, monkeypatch, options, said):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_ADVICE", -1.0)
    sl1max.fit(*make_data(), verbose=1, **options)
    told = [line for line in capsys.readouterr().err.splitlines() if "faster may be" in line]
    assert len(told) == 1 and said in told[0] and "larger tol than 0.0001" in told[0]


def test_the_line_ends_when_a_fit_fails(terminal):
    seen = []

    def fail_later(progress):
        seen.append(progress)
        if len(seen) == 3:
            raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError):
        sl1max.fit(*make_data(), label_mode="independent", verbose=1, callback=fail_later)
    assert terminal.drawn() and terminal.getvalue().endswith("\n")


def test_way_done():
    assert way_done(1e-1, 1e-3, 1e-5) == pytest.approx(0.5)
    assert way_done(1e-1, 1.0, 1e-5) == 0
    assert way_done(1e-1, 1e-9, 1e-5) == 1
    assert way_done(np.inf, 1e-3, 1e-5) == way_done(1e-6, 1e-7, 1e-5) == way_done(1.0, 0.0, 1e-5) == 0


def test_format_seconds():
    assert [format_seconds(s) for s in (0, 59.6, 61, 3661)] == ["0:00", "1:00", "1:01", "1:01:01"]


def test_share_done_by_effort():
    """The first of the classes takes most of the time; those of an earlier call count as done, not as time."""
    tally = Tally(["a", "b", "c", "d"], [6.0, 1.0, 1.0, 50.0], done=[3])
    tally.add(FitProgress("a", 9, 1.0, 1e-6, 1e-5), True, 6.0)
    assert tally.part == 0.75
    assert tally.classes == "2/4 classes"


def test_a_bar_of_nothing(terminal):
    make_display(["a"], [1.0], done=[0]).close()
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
