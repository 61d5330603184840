"""Metrics against hand-computed values, against scikit-learn, and against the definitions written out."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sl1max import metrics

SCORES = np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.7], [0.4, 0.3, 0.6], [0.95, 0.0, 0.05]])
ONE_NUMBER = [
    metrics.average_precision,
    metrics.break_even_point,
    metrics.coverage,
    metrics.optimal_f_measure,
    metrics.ranking_loss,
    metrics.top_class_error,
]
TRUTH = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 0]])


@pytest.fixture(scope="module")
def reference():
    return pytest.importorskip("sklearn.metrics")


@st.composite
def ranked(draw, min_classes=1):
    """An indicator and scores with many ties."""
    shape = (draw(st.integers(1, 8)), draw(st.integers(min_classes, 6)))
    truth = draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 1)))
    scores = draw(hnp.arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))
    return truth, scores


class TestByHand:
    def test_top_class_error(self):
        # Row 0 right, row 1 wrong, row 2 right, row 3 has no label.
        assert metrics.top_class_error(TRUTH, SCORES) == 0.5

    def test_top_class_error_takes_the_first_of_equals(self):
        assert metrics.top_class_error([0, 1], [[1, 1], [1, 1]]) == 0.5

    def test_optimal_f_measure(self):
        # Falling: .95- .9+ .8- .7+ .6+ .5+: six predicted, four hits, four relevant.
        f_measure, threshold = metrics.optimal_f_measure(TRUTH, SCORES, return_threshold=True)
        assert f_measure == pytest.approx(2 * 4 / (6 + 4))
        assert threshold == 0.5

    def test_break_even_point(self):
        # The four highest cells hold two of the four relevant ones.
        assert metrics.break_even_point(TRUTH, SCORES) == 0.5

    def test_break_even_point_shares_a_tie(self):
        # R = 2: one cell above, then one of three tied cells, one of which is relevant.
        assert metrics.break_even_point([[1, 1, 0, 0]], [[2, 1, 1, 1]]) == pytest.approx((1 + 1 / 3) / 2)

    def test_average_precision(self):
        # Row 0: 1 and 2/2; row 1: 1/2; row 2: 1; row 3: none, so 1.
        assert metrics.average_precision(TRUTH, SCORES) == pytest.approx((1 + 0.5 + 1 + 1) / 4)

    def test_coverage(self):
        assert metrics.coverage(TRUTH, SCORES) == pytest.approx((2 + 2 + 1 + 0) / 4)

    def test_ranking_loss(self):
        assert metrics.ranking_loss(TRUTH, SCORES) == pytest.approx((0 + 1 / 2 + 0 + 0) / 4)

    def test_reject_curve(self):
        # By falling top score: row 3 (.95, wrong), 0 (right), 1 (.8, wrong), 2 (.6, right).
        rate, error = metrics.reject_curve(TRUTH, SCORES)
        np.testing.assert_allclose(rate, [0, 0.25, 0.5, 0.75], atol=1e-15)
        np.testing.assert_allclose(error, [2 / 4, 2 / 3, 1 / 2, 1 / 1])

    def test_reject_curve_by_given_confidence(self):
        _, error = metrics.reject_curve(TRUTH, SCORES, confidence=[4, 2, 3, 1])
        np.testing.assert_allclose(error, [2 / 4, 1 / 3, 0, 0])

    def test_reject_curve_averages_over_ties(self):
        _, error = metrics.reject_curve(TRUTH, SCORES, confidence=np.zeros(4))
        np.testing.assert_allclose(error, 0.5)

    @pytest.mark.parametrize(("rate", "error"), [(0, 0.5), (0.25, 2 / 3), (0.49, 2 / 3), (0.5, 0.5), (0.999, 1)])
    def test_error_at_reject_rate(self, rate, error):
        assert metrics.error_at_reject_rate(TRUTH, SCORES, rate) == pytest.approx(error)

    def test_reject_rate_survives_rounding(self):
        # 0.29 * 100 is 28.999999999999996.
        n = 100
        y = np.r_[np.zeros(71), np.full(29, -1)]
        scores = np.c_[np.arange(n, 0, -1.0), np.zeros(n)]
        assert metrics.error_at_reject_rate(y, scores, 0.29) == 0


class TestAgainstScikitLearn:
    """The same numbers as scikit-learn where it has the measure."""

    @given(ranked(min_classes=2))
    def test_ranking_measures(self, reference, data):
        truth, scores = data
        pairs = [
            (metrics.average_precision, reference.label_ranking_average_precision_score),
            (metrics.coverage, reference.coverage_error),
            (metrics.ranking_loss, reference.label_ranking_loss),
        ]
        for ours, theirs in pairs:
            assert ours(truth, scores) == pytest.approx(theirs(truth, scores), abs=1e-12), ours.__name__
            assert ours(sp.csr_array(truth), scores) == ours(truth, scores), ours.__name__

    @given(ranked())
    def test_optimal_f_measure(self, reference, data):
        truth, scores = data
        truth[0, 0] = 1
        precision, recall, _ = reference.precision_recall_curve(truth.ravel(), scores.ravel())
        total = precision + recall
        expected = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0).max()
        best, threshold = metrics.optimal_f_measure(truth, scores, return_threshold=True)
        assert best == pytest.approx(expected, abs=1e-12)
        predicted = scores.ravel() >= threshold
        assert reference.f1_score(truth.ravel(), predicted) == pytest.approx(best, abs=1e-12)

    @given(ranked(min_classes=3), st.randoms())
    def test_top_class_error(self, reference, data, random):
        _, scores = data
        y = np.array([random.randrange(scores.shape[1]) for _ in scores])
        accuracy = reference.accuracy_score(y, scores.argmax(axis=1))
        assert metrics.top_class_error(y, scores) == pytest.approx(1 - accuracy)

    @given(ranked())
    def test_break_even_point_without_ties(self, reference, data):
        truth, scores = data
        truth[0, 0] = 1
        scores = scores + np.arange(scores.size).reshape(scores.shape) * 1e-3
        precision, recall, _ = reference.precision_recall_curve(truth.ravel(), scores.ravel())
        at_equality = precision[:-1][np.isclose(precision[:-1], recall[:-1])]
        assert metrics.break_even_point(truth, scores) == pytest.approx(at_equality.max(initial=0), abs=1e-9)


class TestProperties:
    @given(ranked())
    def test_curve_is_the_mean_over_tie_orders(self, data):
        truth, scores = data
        wrong = truth[np.arange(len(truth)), scores.argmax(axis=1)] == 0
        top = scores.max(axis=1)
        rng = np.random.default_rng(0)
        orders = [np.lexsort((rng.random(len(top)), -top)) for _ in range(400)]
        sampled = np.mean([np.cumsum(wrong[order]) for order in orders], axis=0) / np.arange(1, len(top) + 1)
        _, error = metrics.reject_curve(truth, scores)
        np.testing.assert_allclose(error, sampled[::-1], atol=0.15)
        assert error[0] == pytest.approx(metrics.top_class_error(truth, scores))

    @given(ranked())
    def test_only_the_order_of_scores_matters(self, data):
        truth, scores = data
        truth[0, 0] = 1
        for measure in ONE_NUMBER:
            assert measure(truth, scores) == measure(truth, np.arctan(scores)), measure.__name__

    def test_blocks_do_not_change_the_result(self, monkeypatch):
        rng = np.random.default_rng(1)
        truth, scores = rng.integers(0, 2, (50, 7)), rng.integers(0, 5, (50, 7)).astype(float)
        names = ("average_precision", "coverage", "ranking_loss")
        whole = [getattr(metrics, name)(truth, scores) for name in names]
        monkeypatch.setattr(metrics, "_BLOCK_CELLS", 20)
        assert [getattr(metrics, name)(truth, scores) for name in names] == pytest.approx(whole)

    def test_minus_infinity_is_a_score(self):
        scores = np.array([[0.0, -np.inf], [-np.inf, -1.0]])
        assert metrics.top_class_error([0, 0], scores) == 0.5
        assert metrics.optimal_f_measure([0, 1], scores) == 1.0

    def test_named_labels(self):
        y, scores = ["earn", "ship", "other"], [[0, 1], [1, 0], [1, 0]]
        assert metrics.top_class_error(y, scores, labels=["ship", "earn"]) == pytest.approx(1 / 3)

    def test_codes_and_indicator_agree(self):
        codes = np.array([2, -1, 0, 1])
        indicator = sp.csr_matrix(codes[:, None] == np.arange(3))
        for measure in ONE_NUMBER:
            assert measure(codes, SCORES) == measure(indicator, SCORES)

    def test_explicit_zeros_are_no_labels(self):
        truth = sp.csr_array((np.array([1.0, 0.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
        assert metrics.top_class_error(truth, [[0, 1]]) == 1.0


class TestBadInput:
    @pytest.mark.parametrize(
        ("y_true", "scores", "options", "message"),
        [
            ([0, 1], [0.5, 0.5], {}, r"matrix of n_samples x n_classes, got 1 dim"),
            (np.zeros(0), np.zeros((0, 3)), {}, r"empty: 0 examples x 3 classes"),
            ([0], [[0.0, np.nan]], {}, r"scores\[0, 1\] is NaN"),
            ([0, 1], [[0, 1]], {}, r"y_true has 2 examples but scores has 1"),
            ([[0, 1, 0]], [[0, 1]], {}, r"y_true has 3 columns but scores has 2"),
            ([[0, 2]], [[0, 1]], {}, r"0 and 1 only"),
            (np.zeros((1, 2, 1)), [[0, 1]], {}, r"got 3 dimensions"),
            ([2], [[0, 1]], {}, r"from -1 \(none\) to 1"),
            ([0.5], [[0, 1]], {}, r"whole numbers"),
            (["a"], [[0, 1]], {}, r"say with labels="),
            (["a"], [[0, 1]], {"labels": ["a"]}, r"name the 2 columns"),
        ],
    )
    def test_messages(self, y_true, scores, options, message):
        with pytest.raises(ValueError, match=message):
            metrics.top_class_error(y_true, scores, **options)

    @pytest.mark.parametrize("measure", [metrics.optimal_f_measure, metrics.break_even_point])
    def test_nothing_relevant(self, measure):
        with pytest.raises(ValueError, match="no example has a label"):
            measure([-1], [[0, 1]])

    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
    def test_codes_that_are_no_whole_numbers(self, value):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match="class codes in y_true must be whole numbers from -1"):
                metrics.top_class_error([value], [[0, 1]])

    @pytest.mark.parametrize("rate", [-0.1, 1.0, np.nan, "a", None])
    def test_reject_rate(self, rate):
        with pytest.raises(ValueError, match="reject_rate must be"):
            metrics.error_at_reject_rate([0], [[0, 1]], rate)

    def test_confidence(self):
        with pytest.raises(ValueError, match="vector of 1 values"):
            metrics.reject_curve([0], [[0, 1]], confidence=[1, 2])
        with pytest.raises(ValueError, match=r"confidence\[0\] is NaN"):
            metrics.reject_curve([0], [[0, 1]], confidence=[np.nan])


# Calibration


def test_calibration_of_probabilities_that_are_right():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 20_000)
    y = (proba.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    assert metrics.calibration_error(y, proba) < 0.02
    assert metrics.calibration_error(np.eye(4, dtype=int)[y], proba, which="all") < 0.02
    assert metrics.calibration_error(y, proba**3 / (proba**3).sum(axis=1, keepdims=True)) > 0.1


@pytest.mark.parametrize("which", ["top", "all"])
def test_calibration_curve_against_a_plain_loop(which):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 90).round(1)  # many ties
    Y = rng.integers(0, 2, (90, 3))
    predicted = proba.max(axis=1) if which == "top" else proba.ravel()
    right = Y[np.arange(90), proba.argmax(axis=1)] if which == "top" else Y.ravel()
    mean_proba, frequency, count = metrics.calibration_curve(Y, proba, which=which, n_bins=5)
    assert count.sum() == len(predicted) and len(count) <= 5
    assert (np.diff(mean_proba) > 0).all()
    start = 0
    order = np.argsort(predicted, kind="stable")
    for mean, share, n in zip(mean_proba, frequency, count, strict=True):
        rows = order[start : start + n]
        assert mean == pytest.approx(predicted[rows].mean())
        assert share == pytest.approx(right[rows].mean())
        start += n


def test_calibration_refuses_scores():
    with pytest.raises(ValueError, match="probabilities"):
        metrics.calibration_curve([0, 1], [[2.0, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="n_bins"):
        metrics.calibration_curve([0, 1], [[1.0, 0.0], [0.0, 1.0]], n_bins=0)
    with pytest.raises(ValueError, match="which"):
        metrics.calibration_curve([0, 1], [[1.0, 0.0], [0.0, 1.0]], which="some")
