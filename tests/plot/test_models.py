"""Figures: what they show, and that nothing in them overlaps or is cut off."""

import subprocess
import sys

import numpy as np
import pytest

import sl1max
from sl1max import plot
from sl1max.metrics import calibration_curve, reject_curve
from sl1max.model._explain import Table
from sl1max.plot import _drawing

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")

NAMES = [f"quite a long name {j}" for j in range(20)]


@pytest.fixture(autouse=True)
def agg_backend():
    """Other tests of the same process may have chosen another backend."""
    plt.switch_backend("agg")
    yield
    plt.close("all")


def make_data(n_classes=3, n_samples=150):
    rng = np.random.default_rng(0)
    X = (rng.random((n_samples, 20)) < 0.3).astype(float)
    y = rng.integers(0, n_classes, n_samples)
    X[np.arange(n_samples), y] = 1
    return X, y


def texts_of(ax):
    """All text that is drawn in a figure, with its boxes."""
    ax.figure.canvas.draw()
    renderer = ax.figure.canvas.get_renderer()
    hidden = set()
    for axis in ax.figure.findobj(matplotlib.axis.Axis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.majorTicks, *axis.minorTicks):
            if not low <= tick.get_loc() <= high:
                hidden |= {tick.label1, tick.label2}
    found = [text for text in ax.figure.findobj(matplotlib.text.Text) if text not in hidden]
    box_of = matplotlib.text.Text.get_window_extent  # that of an annotation would hold its line too
    return [
        (text.get_text(), box_of(text, renderer)) for text in found if text.get_visible() and text.get_text().strip()
    ]


def check_layout(ax):
    """No text on top of another, none beyond the edge of the figure."""
    texts = texts_of(ax)
    width, height = ax.figure.canvas.get_width_height()
    for k, (text, box) in enumerate(texts):
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text
        for other, other_box in texts[k + 1 :]:
            overlap = matplotlib.transforms.Bbox.intersection(box, other_box)
            assert overlap is None or min(overlap.width, overlap.height) < 2, (text, other)


@pytest.fixture(scope="module")
def result():
    return sl1max.path(*make_data(), betas=np.geomspace(5, 0.05, 12), tol=1e-5)


def test_path(result):
    ax = plot.plot_path(result, 1, n=4, feature_names=NAMES)
    weights = np.array([model.weights.toarray()[1] for model in result.models])
    greatest = np.argsort(-np.abs(weights).max(axis=0))[:4]
    colored = [line for line in ax.get_lines() if line.get_color() in _drawing.COLORS]
    np.testing.assert_array_equal([line.get_ydata() for line in colored], weights[:, greatest].T)
    np.testing.assert_array_equal(colored[0].get_xdata(), result.betas)
    assert [text.get_text() for text in ax.texts] == [NAMES[j] for j in greatest]
    assert ax.get_xscale() == "log" and ax.get_xlim() == (5, 0.05)
    assert ax.get_ylabel() == "weight for class 1" and "beta" in ax.get_xlabel()
    check_layout(ax)


@pytest.mark.parametrize("betas", [np.geomspace(5, 0.5, 4), np.geomspace(50, 1e-4, 4), [0.5]])
def test_path_over_any_range(betas):
    ax = plot.plot_path(sl1max.path(*make_data(), betas=betas, tol=1e-2), 0, n=9)
    check_layout(ax)


def test_path_of_two_classes_and_one():
    X, y = make_data(2)
    betas = [2.0, 0.5]
    assert plot.plot_path(sl1max.path(X, y, betas=betas)).get_ylabel() == "weight for class 1"
    assert plot.plot_path(sl1max.path(X, (y == 1)[:, None], betas=betas)).get_ylabel() == "weight for class 0"


def test_path_without_weights():
    ax = plot.plot_path(sl1max.path(*make_data(), betas=[1e6, 1e5]), 0)
    assert not ax.texts
    check_layout(ax)


def test_path_refuses(result):
    with pytest.raises(ValueError, match="which of the 3 classes"):
        plot.plot_path(result)
    with pytest.raises(ValueError, match="is not a class of the model"):
        plot.plot_path(result, 7)
    with pytest.raises(ValueError, match="must name all 20 features"):
        plot.plot_path(result, 1, feature_names=["too", "few"])
    with pytest.raises(ValueError, match="leave out beta = 0"):
        plot.plot_path(sl1max.PathResult(np.array([1.0, 0.0]), result.models[:2]), 1)


def test_convergence_of_one_problem():
    history = []
    sl1max.fit(*make_data(), callback=history.append, tol=1e-8)
    ax = plot.plot_convergence(history)
    gap, above, target = ax.get_lines()
    np.testing.assert_array_equal(gap.get_xdata(), [progress.n_iter for progress in history])
    np.testing.assert_allclose(gap.get_ydata()[1:], [progress.dual_gap for progress in history][1:])
    assert np.isnan(above.get_ydata()[-1])
    assert target.get_ydata()[0] == history[-1].target
    assert ax.get_yscale() == "log"
    check_layout(ax)


@pytest.mark.parametrize("n_classes", [3, 12])
def test_convergence_of_many_problems(n_classes):
    X, y = make_data(n_classes)
    history = []
    sl1max.fit(X, y, label_mode="independent", callback=history.append, tol=1e-6)
    ax = plot.plot_convergence(history)
    lines = ax.get_lines()
    assert len(lines) == n_classes + 1
    last = {progress.class_label: progress.n_iter for progress in history}
    named = [int(text.get_text()) for text in ax.get_legend().get_texts()]
    assert len(named) == min(n_classes, 6)
    assert min(last[label] for label in named) >= max([last[label] for label in last if label not in named], default=0)
    first = next(line for line in lines if line.get_label() == str(named[0]))
    own = [progress for progress in history if progress.class_label == named[0]]
    expected = [progress.dual_gap / progress.target for progress in own]
    np.testing.assert_allclose(first.get_ydata(), expected)
    check_layout(ax)


def test_convergence_with_infinite_and_zero_gaps():
    history = [sl1max.FitProgress(None, k, 1.0, gap, 1e-4) for k, gap in enumerate((np.inf, 1.0, 0.1, 0.0), start=1)]
    ax = plot.plot_convergence(history)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [np.nan, 1.0, 0.1, np.nan])
    check_layout(ax)
    with pytest.raises(ValueError, match="history is empty"):
        plot.plot_convergence([])


@pytest.mark.parametrize("n", [1, 5, 20])
def test_top_features(n):
    X, y = make_data()
    model = sl1max.fit(X, y, beta=0.05)
    ax = plot.plot_top_features(model, 1, n, feature_names=NAMES)
    table = model.top_features(1, n, feature_names=NAMES)
    assert isinstance(table, Table)
    order = np.argsort(table["weight"])
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], table["weight"][order])
    assert [text.get_text() for text in ax.get_yticklabels()] == table["feature"][order].tolist()
    for bar in ax.patches:
        expected = _drawing.POSITIVE if bar.get_width() > 0 else _drawing.NEGATIVE
        assert matplotlib.colors.to_hex(bar.get_facecolor()).upper() == expected
    assert ax.get_title() == "class 1" and ax.get_xlabel() == "weight"
    check_layout(ax)


def test_top_features_of_independent_classes():
    X, y = make_data()
    ax = plot.plot_top_features(sl1max.fit(X, np.eye(3)[y]), 1)
    assert ax.get_xlabel() == "weight (log-odds)"


def test_top_features_refuses():
    X, y = make_data()
    with pytest.raises(ValueError, match="class 1 has no weights"):
        plot.plot_top_features(sl1max.fit(X, y, beta=1e6), 1)


def test_given_axes_are_used(result):
    history = []
    model = sl1max.fit(*make_data(), callback=history.append)
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    assert plot.plot_path(result, 1, feature_names=NAMES, ax=axes[0]) is axes[0]
    assert plot.plot_convergence(history, ax=axes[1]) is axes[1]
    assert plot.plot_top_features(model, 1, ax=axes[2]) is axes[2]
    assert plt.get_fignums() == [figure.number]
    check_layout(axes[0])


def test_spread():
    places = np.array([0.5, 0.1, 0.11, 0.12, 0.9, 0.99])
    spread = _drawing.spread_apart(places, 0.1, 0, 1)
    assert (np.argsort(spread) == np.argsort(places)).all()
    assert np.diff(np.sort(spread)).min() >= 0.1 - 1e-12
    assert spread.min() >= 0 and spread.max() <= 1 + 1e-12
    assert spread[0] == pytest.approx(0.5)
    assert len(_drawing.spread_apart([], 0.1, 0, 1)) == 0


def test_without_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import sl1max, sl1max.plot\n"
        "model = sl1max.fit([[1, 0], [1, 1], [0, 1], [0, 1]], [1, 1, 0, 0], distribution='joint')\n"
        "try: sl1max.plot.plot_top_features(model, 1)\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "sl1max.plot needs matplotlib: pip install matplotlib\n"


def test_calibration_shows_the_curve():
    X, y = make_data()
    proba = np.exp(sl1max.fit(X, y).predict_log_proba(X))
    ax = plot.plot_calibration(y, proba)
    mean_proba, frequency, count = calibration_curve(y, proba)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.column_stack([mean_proba, frequency]))
    assert f"{count.sum()} predictions" in ax.get_legend_handles_labels()[1][1]
    assert plot.plot_calibration(np.eye(3, dtype=int)[y], proba, which="all").get_xlim()[0] <= 0


def test_reject_curve_is_not_scaled_by_its_last_examples():
    """The most confident example is wrong, so that the curve ends at 1; few others are."""
    wrong = np.arange(1000) % 20 == 0
    ax = plot.plot_reject(wrong.astype(int), np.column_stack([2000.0 - np.arange(1000), np.zeros(1000)]))
    assert ax.lines[0].get_ydata()[-1] == 1
    assert ax.get_ylim() == (0, pytest.approx(1.05 * 2 / 21))
    ax = plot.plot_reject([0, 0], [[1, 0], [2, 0]])
    assert ax.get_ylim() == (0, 1)


def test_reject_curves_of_two_models_share_axes():
    X, y = make_data()
    ax = None
    for beta in (0.1, 1.0):
        scores = sl1max.fit(X, y, beta=beta).decision_function(X)
        ax = plot.plot_reject(y, scores, name=f"beta {beta}", ax=ax)
    assert len(ax.lines) == 2
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.column_stack(reject_curve(y, scores)))
    assert [text.get_text() for text in ax.get_legend().texts] == ["beta 0.1", "beta 1.0"]


def test_top_features_by_effect_of_an_estimator():
    X, y = make_data()
    classifier = sl1max.MaxentClassifier(beta=0.1).fit(X, y)
    ax = plot.plot_top_features(classifier, 1, 5, by="effect", against=0, X=X)
    effects = classifier.top_features(1, 5, by="effect", against=0, X=X)["effect"]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], np.sort(effects))
    assert ax.get_title() == "class 1 against 0"


def test_scores_of_a_cross_validation():
    X, y = make_data()
    search = sl1max.MaxentClassifierCV(betas=8, cv=3, scoring="neg_log_loss").fit(X, y)
    ax = plot.plot_cv(search)
    results = search.cv_results_
    expected = np.column_stack([results["param_beta"], results["mean_test_score"]])
    np.testing.assert_allclose(ax.lines[0].get_xydata(), expected)
    assert ax.lines[1].get_xdata()[0] == search.beta_
    two = sl1max.MaxentClassifierCV(betas=[1.0, 0.5, 0.1], cv=3, distribution=["joint", "conditional"]).fit(X, y)
    assert len(plot.plot_cv(two).collections) == 2
