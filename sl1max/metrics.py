"""Error, F-measure, ranking and rejection measures on a score matrix.

Every function takes the truth and an ``(n_samples, n_classes)`` matrix of scores, higher meaning more likely.
Only the order of the scores matters, so log-probabilities, log-odds and probabilities give the same result. The truth
is either

* a vector of class codes ``0 .. n_classes - 1``, where ``-1`` marks an example that has none of the classes;
* a vector of labels, together with ``labels=``, the label of each column of ``scores``. A label that is not
  among them counts as none of the classes;
* an ``(n_samples, n_classes)`` indicator matrix, dense or sparse: any number of classes per example.

Micro-averaged measures compare the scores of all pairs of example and class. Rank joint and
class-conditional models by the log of p(x, c), and conditional models by the log posterior.
"""

import numbers
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

__all__ = [
    "average_precision",
    "break_even_point",
    "calibration_curve",
    "calibration_error",
    "coverage",
    "error_at_reject_rate",
    "optimal_f_measure",
    "ranking_loss",
    "reject_curve",
    "top_class_error",
]

Truth: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix
Which = Literal["top", "all"]

# Cells handled at once by the measures that sort every row: bounds their memory.
_BLOCK_CELLS = 1 << 22


def top_class_error(y_true: Truth, scores: ArrayLike, *, labels: ArrayLike | None = None) -> float:
    """Share of examples whose highest-scoring class is not among their labels.

    An example without labels is always an error. Of classes with equal scores the first is the top one.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    scores : array-like of shape (n_samples, n_classes)
        Larger means more likely.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from sl1max.metrics import top_class_error
    >>> top_class_error([0, 1, 1, -1], [[2, 1], [0, 3], [1, 0], [5, 4]])
    0.5
    """
    truth, scores = _check_inputs(y_true, scores, labels)
    return float(1.0 - _top_class_hits(truth, scores).mean())


def optimal_f_measure(
    y_true: Truth, scores: ArrayLike, *, labels: ArrayLike | None = None, return_threshold: bool = False
) -> float | tuple[float, float]:
    """Micro-averaged F-measure at the best threshold over all cells.

    A cell is predicted when its score is at least the threshold; one threshold serves all classes and
    examples.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    scores : array-like of shape (n_samples, n_classes)
        Larger means more likely.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.
    return_threshold : bool, default=False
        Return the threshold too: the highest one, if several are best.

    Returns
    -------
    f_measure : float
        Between 0 and 1.
    threshold : float
        Only if ``return_threshold``.

    Examples
    --------
    >>> from sl1max.metrics import optimal_f_measure
    >>> optimal_f_measure([[1, 0], [1, 1]], [[0.9, 0.6], [0.7, 0.2]], return_threshold=True)
    (0.8571428571428571, 0.2)
    """
    truth, scores = _check_inputs(y_true, scores, labels)
    relevant = np.sort(_relevant_scores(truth, scores, "the F-measure"))
    # F increases only when a relevant cell is added, so only the scores of relevant cells are needed as thresholds.
    n_predicted = scores.size - np.searchsorted(np.sort(scores, axis=None), relevant, side="left")
    n_hits = len(relevant) - np.searchsorted(relevant, relevant, side="left")
    f_measure = 2.0 * n_hits / (n_predicted + len(relevant))
    best = len(relevant) - 1 - np.argmax(f_measure[::-1])
    if return_threshold:
        return float(f_measure[best]), float(relevant[best])
    return float(f_measure[best])


def break_even_point(y_true: Truth, scores: ArrayLike, *, labels: ArrayLike | None = None) -> float:
    """Micro-averaged precision where it equals recall.

    That is the precision of the R highest cells, where R is the number of relevant cells. If several cells share the
    R-th score, the group's average precision is used for those among the first R.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    scores : array-like of shape (n_samples, n_classes)
        Larger means more likely.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from sl1max.metrics import break_even_point
    >>> break_even_point([[1, 0], [1, 1]], [[0.9, 0.6], [0.7, 0.2]])
    0.6666666666666666
    """
    truth, scores = _check_inputs(y_true, scores, labels)
    relevant = _relevant_scores(truth, scores, "the break-even point")
    threshold = np.partition(scores, scores.size - len(relevant), axis=None)[scores.size - len(relevant)]
    n_above = np.count_nonzero(scores > threshold)
    n_tied = np.count_nonzero(scores == threshold)
    hits_above = np.count_nonzero(relevant > threshold)
    hits_tied = np.count_nonzero(relevant == threshold)
    return float((hits_above + hits_tied * (len(relevant) - n_above) / n_tied) / len(relevant))


def average_precision(y_true: Truth, scores: ArrayLike, *, labels: ArrayLike | None = None) -> float:
    """Label-ranking average precision.

    For each label of an example, the share of true labels among the classes that score at least as high;
    averaged over the labels of the example, then over the examples. An example that has none or all of the
    classes counts 1, as in scikit-learn's ``label_ranking_average_precision_score``.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    scores : array-like of shape (n_samples, n_classes)
        Larger means more likely.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.

    Returns
    -------
    float
        Above 0, at most 1; higher is better.

    Examples
    --------
    >>> from sl1max.metrics import average_precision
    >>> average_precision([0, 2], [[3, 2, 1], [3, 1, 2]])
    0.75
    """

    def of_rows(relevant: np.ndarray, n_at_least: np.ndarray, hits_at_least: np.ndarray) -> np.ndarray:
        n_relevant = relevant.sum(axis=1)
        total = np.where(relevant, hits_at_least / n_at_least, 0.0).sum(axis=1)
        trivial = (n_relevant == 0) | (n_relevant == relevant.shape[1])
        return np.where(trivial, 1.0, total / np.maximum(n_relevant, 1))

    return _mean_over_rows(of_rows, y_true, scores, labels)


def coverage(y_true: Truth, scores: ArrayLike, *, labels: ArrayLike | None = None) -> float:
    """Mean rank of the lowest-ranked label of an example.

    Counted in classes, from 1 (a single label, ranked first); classes that tie with the lowest label are
    included. An example without labels counts 0, as in scikit-learn's ``coverage_error``. Schapire and
    Singer's coverage is this minus one.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    scores : array-like of shape (n_samples, n_classes)
        Larger means more likely.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.

    Returns
    -------
    float
        Between 0 and n_classes; lower is better.

    Examples
    --------
    >>> from sl1max.metrics import coverage
    >>> coverage([[1, 0, 1], [0, 1, 0]], [[3, 2, 1], [1, 3, 2]])
    2.0
    """

    def of_rows(relevant: np.ndarray, n_at_least: np.ndarray, hits_at_least: np.ndarray) -> np.ndarray:
        return np.where(relevant, n_at_least, 0).max(axis=1)

    return _mean_over_rows(of_rows, y_true, scores, labels)


def ranking_loss(y_true: Truth, scores: ArrayLike, *, labels: ArrayLike | None = None) -> float:
    """Share of (label, other class) pairs of an example in the wrong order, averaged over the examples.

    A tie is in the wrong order. An example that has none or all of the classes counts 0, as in scikit-learn's
    ``label_ranking_loss``.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    scores : array-like of shape (n_samples, n_classes)
        Larger means more likely.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.

    Returns
    -------
    float
        Between 0 and 1; lower is better.

    Examples
    --------
    >>> from sl1max.metrics import ranking_loss
    >>> ranking_loss([0, 2], [[3, 2, 1], [3, 1, 2]])
    0.25
    """

    def of_rows(relevant: np.ndarray, n_at_least: np.ndarray, hits_at_least: np.ndarray) -> np.ndarray:
        n_relevant = relevant.sum(axis=1)
        n_pairs = n_relevant * (relevant.shape[1] - n_relevant)
        n_wrong = np.where(relevant, n_at_least - hits_at_least, 0).sum(axis=1)
        return n_wrong / np.maximum(n_pairs, 1)

    return _mean_over_rows(of_rows, y_true, scores, labels)


def reject_curve(
    y_true: Truth,
    scores: ArrayLike,
    *,
    confidence: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Top-class error of what is left after rejecting the least confident examples.

    Examples of equal confidence are rejected in no particular order: the curve is the average over all
    orders.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    scores : array-like of shape (n_samples, n_classes)
        Larger means more likely.
    confidence : array-like of shape (n_samples,), optional
        Confidence of each example; the lowest are rejected first. By default the largest score.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.

    Returns
    -------
    reject_rate : ndarray of shape (n_samples,)
        ``k / n_samples`` for k = 0 .. n_samples - 1 rejected examples.
    error : ndarray of shape (n_samples,)
        Error rate among the ``n_samples - k`` examples kept.

    Examples
    --------
    >>> from sl1max.metrics import reject_curve
    >>> rate, error = reject_curve([0, 1, 1, -1], [[8, 1], [0, 9], [4, 0], [3, 2]])
    >>> rate.tolist()
    [0.0, 0.25, 0.5, 0.75]
    >>> error.round(3).tolist()
    [0.5, 0.333, 0.0, 0.0]
    """
    truth, scores = _check_inputs(y_true, scores, labels)
    wrong = 1.0 - _top_class_hits(truth, scores)
    _, group = np.unique(-_check_confidence(confidence, scores), return_inverse=True)
    size = np.bincount(group)
    # Within a group of equal confidence every example carries the group's average error.
    n_wrong = np.cumsum(np.repeat(np.bincount(group, weights=wrong) / size, size))
    n_kept = np.arange(1, len(wrong) + 1)
    return 1.0 - n_kept[::-1] / len(wrong), (n_wrong / n_kept)[::-1]


def error_at_reject_rate(
    y_true: Truth,
    scores: ArrayLike,
    reject_rate: float,
    *,
    confidence: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Top-class error among the examples kept when a given share is rejected.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    scores : array-like of shape (n_samples, n_classes)
        Larger means more likely.
    reject_rate : float
        Share of examples to reject, from 0 to below 1; whole examples are rejected, rounded down.
    confidence : array-like of shape (n_samples,), optional
        Confidence of each example; the lowest are rejected first. By default the largest score.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from sl1max.metrics import error_at_reject_rate
    >>> error_at_reject_rate([0, 1, 1, -1], [[8, 1], [0, 9], [4, 0], [3, 2]], 0.5)
    0.0
    """
    if not isinstance(reject_rate, numbers.Real) or not 0.0 <= reject_rate < 1.0:
        raise ValueError(f"reject_rate must be at least 0 and below 1, got {reject_rate!r}")
    _, error = reject_curve(y_true, scores, confidence=confidence, labels=labels)
    # Rounding in a product such as 0.29 * 100 must not lose an example.
    return float(error[int(reject_rate * len(error) * (1.0 + 1e-12))])


def calibration_curve(
    y_true: Truth,
    proba: ArrayLike,
    *,
    which: Which = "top",
    n_bins: int = 10,
    labels: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frequency of correct predictions against their predicted probability.

    The predictions are ordered by their probability and cut into bins of nearly equal size. Equal probabilities are in
    the same bin.

    Parameters
    ----------
    y_true : array-like or sparse matrix
        Class codes, labels or indicator (see the module's description).
    proba : array-like of shape (n_samples, n_classes)
        Probabilities.
    which : {"top", "all"}
        "top": one prediction for each example, its most probable class. "all": a prediction for each example and class,
        that the example has the class.
    n_bins : int
        Maximum number of bins.
    labels : array-like of shape (n_classes,), optional
        The label of each column, when ``y_true`` holds labels.

    Returns
    -------
    mean_proba : ndarray of shape (n_bins,)
        Mean probability of the predictions of each bin, ascending.
    frequency : ndarray of shape (n_bins,)
        Share of correct predictions.
    count : ndarray of shape (n_bins,)
        Number of predictions.

    Examples
    --------
    >>> from sl1max.metrics import calibration_curve
    >>> mean_proba, frequency, count = calibration_curve([0, 1, 1, 0], [[0.9, 0.1], [0.7, 0.3], [0.1, 0.9], [0.7, 0.3]])
    >>> mean_proba.round(2).tolist(), frequency.tolist(), count.tolist()
    ([0.7, 0.9], [0.5, 1.0], [2, 2])
    """
    if not isinstance(n_bins, numbers.Integral) or n_bins < 1:
        raise ValueError(f"n_bins={n_bins!r} must be a positive integer")
    truth, proba = _check_inputs(y_true, proba, labels)
    if proba.min() < 0 or proba.max() > 1 + 1e-9:
        raise ValueError("proba must hold probabilities, between 0 and 1")
    if which == "top":
        predicted, right = proba.max(axis=1), _top_class_hits(truth, proba)
    elif which == "all":
        predicted, right = proba.ravel(), truth.toarray().ravel().astype(float)
    else:
        raise ValueError(f"which={which!r} is unknown: it must be 'top' or 'all'")
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, n_bins + 1)[1:-1], method="lower"))
    place = np.searchsorted(edges, predicted, side="left")
    count = np.bincount(place)
    sums = np.bincount(place, predicted), np.bincount(place, right)
    held = count > 0
    mean_proba, frequency = (total[held] / count[held] for total in sums)
    return mean_proba, frequency, count[held]


def calibration_error(
    y_true: Truth,
    proba: ArrayLike,
    *,
    which: Which = "top",
    n_bins: int = 10,
    labels: ArrayLike | None = None,
) -> float:
    """Expected calibration error: mean distance between predicted probability and observed frequency.

    Parameters
    ----------
    y_true, proba, which, n_bins, labels :
        As in `calibration_curve`.

    Returns
    -------
    float
        Between 0 and 1: mean absolute difference of ``mean_proba`` and ``frequency``, weighted by bin size.

    Examples
    --------
    >>> from sl1max.metrics import calibration_error
    >>> round(calibration_error([0, 1, 1, 0], [[0.9, 0.1], [0.7, 0.3], [0.1, 0.9], [0.7, 0.3]]), 3)
    0.15
    """
    mean_proba, frequency, count = calibration_curve(y_true, proba, which=which, n_bins=n_bins, labels=labels)
    return float(np.average(np.abs(mean_proba - frequency), weights=count))


def _check_inputs(y_true: Truth, scores: ArrayLike, labels: ArrayLike | None) -> tuple[sp.csr_array, np.ndarray]:
    """The truth as a CSR indicator of ones, the scores as a float64 matrix of the same shape."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2:
        raise ValueError(f"scores must be a matrix of n_samples x n_classes, got {scores.ndim} dimension(s)")
    if scores.size == 0:
        raise ValueError(f"scores is empty: {scores.shape[0]} examples x {scores.shape[1]} classes")
    if np.isnan(scores).any():
        i, c = np.argwhere(np.isnan(scores))[0]
        raise ValueError(f"scores[{i}, {c}] is NaN")
    if not sp.issparse(y_true):
        y_true = np.asarray(y_true)
    if y_true.ndim not in (1, 2):
        raise ValueError(f"y_true must be a vector or an indicator matrix, got {y_true.ndim} dimensions")
    if y_true.shape[0] != scores.shape[0]:
        raise ValueError(f"y_true has {y_true.shape[0]} examples but scores has {scores.shape[0]}")
    if y_true.ndim == 2:
        return _check_indicator(y_true, scores.shape[1]), scores
    codes = _check_codes(y_true, scores.shape[1], labels)
    rows = np.flatnonzero(codes >= 0)
    return sp.csr_array((np.ones(len(rows), dtype=bool), (rows, codes[rows])), shape=scores.shape), scores


def _check_indicator(indicator: Any, n_classes: int) -> sp.csr_array:
    if indicator.shape[1] != n_classes:
        raise ValueError(f"y_true has {indicator.shape[1]} columns but scores has {n_classes}")
    truth = sp.csr_array(indicator)
    truth.sum_duplicates()
    if truth.nnz and not np.isin(truth.data, (0, 1)).all():
        raise ValueError("an indicator y_true must hold 0 and 1 only")
    truth = truth.astype(bool)
    truth.eliminate_zeros()
    return truth


def _check_codes(y_true: Any, n_classes: int, labels: ArrayLike | None) -> np.ndarray:
    if labels is not None:
        labels = np.asarray(labels)
        if labels.shape != (n_classes,):
            raise ValueError(f"labels must name the {n_classes} columns of scores, got shape {labels.shape}")
        order = np.argsort(labels)
        place = order[np.minimum(np.searchsorted(labels, y_true, sorter=order), n_classes - 1)]
        return np.where(labels[place] == y_true, place, -1)
    if y_true.dtype.kind not in "biuf":
        raise ValueError("y_true holds labels that are not class codes; say with labels= what each column is")
    in_range = (y_true >= -1) & (y_true < n_classes)  # of NaN false
    if not in_range.all() or (y_true % 1).any():
        raise ValueError(
            f"class codes in y_true must be whole numbers from -1 (none) to {n_classes - 1}; "
            "for other labels, say with labels= what each column is"
        )
    return y_true.astype(np.int64)


def _check_confidence(confidence: ArrayLike | None, scores: np.ndarray) -> np.ndarray:
    if confidence is None:
        return scores.max(axis=1)
    confidence = np.asarray(confidence, dtype=np.float64)
    if confidence.shape != (len(scores),):
        raise ValueError(f"confidence must be a vector of {len(scores)} values, got shape {confidence.shape}")
    if np.isnan(confidence).any():
        raise ValueError(f"confidence[{np.flatnonzero(np.isnan(confidence))[0]}] is NaN")
    return confidence


def _rows_of(truth: sp.csr_array) -> np.ndarray:
    """The row of every stored cell of a CSR matrix."""
    return np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))


def _top_class_hits(truth: sp.csr_array, scores: np.ndarray) -> np.ndarray:
    """1.0 for every example whose top class is among its labels, else 0.0."""
    rows = _rows_of(truth)
    hit = truth.indices == scores.argmax(axis=1)[rows]
    return np.bincount(rows[hit], minlength=len(scores)).astype(np.float64)


def _relevant_scores(truth: sp.csr_array, scores: np.ndarray, measure: str) -> np.ndarray:
    if truth.nnz == 0:
        raise ValueError(f"no example has a label: {measure} is undefined")
    return scores[_rows_of(truth), truth.indices]


def _mean_over_rows(
    of_rows: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    y_true: Truth,
    scores: ArrayLike,
    labels: ArrayLike | None,
) -> float:
    """Mean over the examples of ``of_rows(relevant, n_at_least, hits_at_least)``.

    The arrays have shape (rows, n_classes), in order of rising score: whether the cell is relevant, and how many
    cells and how many relevant cells of its row score at least as high.
    """
    truth, scores = _check_inputs(y_true, scores, labels)
    n_samples, n_classes = scores.shape
    step = max(1, _BLOCK_CELLS // n_classes)
    total = 0.0
    for start in range(0, n_samples, step):
        block = scores[start : start + step]
        order = np.argsort(block, axis=1)
        block = np.take_along_axis(block, order, axis=1)
        relevant = np.take_along_axis(truth[start : start + step].toarray(), order, axis=1)
        # Position of the first cell with the same score: ties count as at least as high.
        first = np.zeros(block.shape, dtype=np.intp)
        first[:, 1:] = np.where(block[:, 1:] != block[:, :-1], np.arange(1, n_classes), 0)
        np.maximum.accumulate(first, axis=1, out=first)
        hits_from = relevant[:, ::-1].cumsum(axis=1)[:, ::-1]
        hits_at_least = np.take_along_axis(hits_from, first, axis=1)
        total += of_rows(relevant, n_classes - first, hits_at_least).sum()
    return float(total / n_samples)
