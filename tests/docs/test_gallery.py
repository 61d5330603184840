"""The examples of docs/gallery run, and the embeddings among them do what they say."""

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
plt = pytest.importorskip("matplotlib.pyplot")

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"
CHECKED = {"plot_em_experts", "plot_hierarchy", "plot_output_codes"}
OTHERS = sorted(path.stem for path in GALLERY.glob("plot_*.py") if path.stem not in CHECKED)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run an example in an empty folder, without a screen; returns its names."""
    monkeypatch.chdir(tmp_path)
    backend = plt.get_backend()
    plt.switch_backend("agg")
    yield lambda name: runpy.run_path(str(GALLERY / f"{name}.py"))
    plt.close("all")
    plt.switch_backend(backend)


@pytest.mark.parametrize("name", OTHERS)
def test_example(run, name):
    run(name)


def test_experts(run, capsys):
    names = run("plot_em_experts")
    plain = np.mean(names["plain"].predict(names["X_test"]) == names["y_test"])
    assert names["right"] > 0.8 > 0.6 > plain
    assert np.all(np.diff(names["history"]) > -1e-3)
    first, second = (expert.weights(1)[20:] for expert in names["experts"])
    assert np.all(first * second < 0)


def test_hierarchy(run, capsys):
    error = {name: np.mean(values) for name, values in run("plot_hierarchy")["wrong"].items()}
    assert max(error["tree, given"], error["tree, learnt"]) < error["plain"]
    assert "learnt: (('course', 'project'), ('faculty', 'student'))" in capsys.readouterr().out


def test_output_codes(run, capsys):
    names = run("plot_output_codes")
    assert np.median(names["errors"][-1]) < names["plain"]["exclusive"]
