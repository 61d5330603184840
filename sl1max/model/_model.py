"""The fitted model: sparse weights, scores, probabilities, predictions."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sl1max._core._scoring import Weights, score_rows, top_rows
from sl1max._data.inputs import read_offset, read_row_pieces, read_rows
from sl1max._data.moments import IN_CLASS
from sl1max._utils.threads import count_threads, map_threads
from sl1max._utils.typing import Matrix
from sl1max.model._display import model_html
from sl1max.model._explain import Explanation, Ranking, Sign, Table, explain, top_features
from sl1max.model._export import to_sklearn, to_sparse_dict
from sl1max.model._io import MAX_BYTES, read_model, write_model

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

LOG_HALF = np.log(0.5)
LOG_BELOW_ONE = np.log1p(-(2.0**-53))  # the log of the largest double below 1
BLOCK_CELLS = 1 << 16  # scores computed at a time if not all of them are needed


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """Maximum-entropy classifier returned by `sl1max.fit`.

    ``objective``, ``objective_zero``, ``dual_gap``, ``n_iter`` and ``converged`` are single numbers when the
    classes share one objective (joint or conditional, exclusive classes), otherwise arrays (n_classes,).

    Attributes
    ----------
    distribution : {"conditional", "joint", "class-conditional"}
    label_mode : {"exclusive", "independent"}
        Whether each example has one class, or each class is a binary problem.
    trained_on_indicator : bool
        Trained on an indicator matrix, not on a vector of labels.
    sparse_output : bool
        Trained on a sparse indicator; `predict` then returns one.
    classes : ndarray of shape (n_classes,)
        Class labels; for an indicator column numbers, or the column names of a data frame.
    feature_names : ndarray of shape (n_features,) or None
        Column names, if X was a data frame with text for names. Data frames given for prediction must have the same.
    fit_intercept : bool
        As given to `sl1max.fit`.
    weights : csr_array of shape (n_classes, n_features)
        lambda; for independent classes lambda_1 - lambda_0, the weights of the class less those of its non-class.
    intercept : ndarray of shape (n_classes,)
        Constants that `decision_function` adds to the scores. Conditional and joint: b_c, for independent classes
        b_1 - b_0. Class-conditional: ln p~(c) - ln Z(c). Infinite for an independent class that holds all or
        none of the training examples, and for one that is `unfinished`.
    log_z : float, ndarray of shape (n_classes,) or None
        Log of the normaliser. Class-conditional: ln Z(c). Joint: ln Z, one per class if they are independent.
        Conditional: None, there is one for each example.
    class_prior : ndarray of shape (n_classes,)
        p~(c), the share of each class in the training set.
    total_weight : float
        Number of training examples, or the total of their weights.
    objective : float or ndarray
        Value of the penalised loss.
    objective_zero : float or ndarray
        The same with all weights zero and the intercept fitted.
    dual_gap : float or ndarray
        Certified upper bound on the distance of the objective to its minimum.
    n_iter : int or ndarray
        Rounds (``solver="newton"``) or single updates (``solver="sequential"``).
    converged : bool or ndarray
        dual_gap <= tol * objective_zero.
    beta : float or None
        None if it was an array.
    beta_rule, tol :
        As given to `sl1max.fit`.
    solver : {"newton", "sequential", "adaboost", "liblinear"}
        The algorithm that trained it.
    penalty : dict or None
        What regularisation there was beside beta: those of "beta_upper", "l2", "min_weight" and "max_weight" that were
        used, None if it was an array. With l1_ratio, what it makes of beta and l2.
    source : dict or None
        For models trained by the command ``sl1max``, the source of the features: ``kind``, which is
        "svmlight", "npz" or "text", and ``first_feature``, the number of the first feature in the file. Of "text" also
        the vectoriser.
    """

    distribution: str
    label_mode: str
    trained_on_indicator: bool
    sparse_output: bool
    classes: np.ndarray
    feature_names: np.ndarray | None
    fit_intercept: bool
    weights: sparse.csr_array
    intercept: np.ndarray
    log_z: float | np.ndarray | None
    class_prior: np.ndarray
    total_weight: float
    objective: float | np.ndarray
    objective_zero: float | np.ndarray
    dual_gap: float | np.ndarray
    n_iter: int | np.ndarray
    converged: bool | np.ndarray
    beta: float | None
    beta_rule: str
    solver: str
    tol: float
    _parts: tuple[sparse.csr_array, sparse.csr_array] | None
    source: dict[str, Any] | None = None
    penalty: dict[str, float | None] | None = None

    @property
    def n_classes(self) -> int:
        return self.weights.shape[0]

    @property
    def n_features(self) -> int:
        return self.weights.shape[1]

    @property
    def unfinished(self) -> np.ndarray:
        """Labels of the classes that an interrupted or failed fit did not train; they are never predicted."""
        return self.classes[np.isneginf(self.intercept) & (self.class_prior > 0)]

    def __repr__(self) -> str:
        state = "converged" if np.all(self.converged) else "not converged"
        return (
            f"<sl1max.Model: {self.distribution}, {self.n_classes} {self.label_mode} classes, "
            f"{self.n_features} features, {self.weights.nnz} weights, {state}>"
        )

    def _repr_html_(self) -> str:
        return model_html(self)

    def _part(self, side: int) -> sparse.csr_array:
        """Weights of one side, ``IN_CLASS`` or ``NON_CLASS``; those of exclusive classes are in the class."""
        if self._parts is None:
            return self.weights
        return self._parts[0] if side == IN_CLASS else self._parts[1]

    @cached_property
    def _by_feature(self) -> Weights:
        by_feature = self.weights.tocsc()
        return Weights(self.n_classes, by_feature.indptr, by_feature.indices, by_feature.data)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_by_feature"}

    def _read_offset(self, offset, n_samples):
        if offset is None:
            return None
        cancels = self.distribution == "conditional" and self.label_mode == "exclusive"
        return read_offset(offset, n_samples, self.n_classes, per_example_cancels=cancels)

    def scores(self, X: Matrix) -> np.ndarray:
        """lambda_c . x_i, an array (n_samples, n_classes).

        Examples
        --------
        >>> import numpy as np
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> model = sl1max.fit(X, y)
        >>> bool(abs(np.diff(model.scores(X) + model.intercept)[:, 0] - model.decision_function(X)).max() < 1e-12)
        True
        """
        rows = read_rows(X, self.n_features, self.feature_names)
        scores = np.empty((rows.n_rows, self.n_classes))
        score_rows(self._by_feature, rows, np.zeros(self.n_classes), None, 0, rows.n_rows, scores)
        return scores

    def decision_function(self, X: Matrix, offset: ArrayLike | None = None, n_jobs: int | None = None) -> np.ndarray:
        """Compute the decision value of each class; larger values are more likely.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_classes), optional
            Added to the scores, as in training.
        n_jobs : int, optional
            Number of threads; the result does not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for a vector of two labels
            Class-conditional: lambda_c . x - ln Z(c) + ln p~(c). Joint, exclusive: ln p(x, c) up to one
            constant. Conditional, exclusive: the scores with the intercept. Otherwise the log-odds. For a vector of two
            labels, the value of the second minus that of the first.

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> sl1max.fit(X, y).decision_function([[1, 0], [0, 1]]) > 0
        array([ True, False])
        """
        decision = self._decide(X, offset, n_jobs)
        return decision[:, 1] - decision[:, 0] if self._has_two_labels else decision

    @property
    def _has_two_labels(self):
        """Trained on a vector of two labels: scikit-learn then has one decision value for both."""
        return not self.trained_on_indicator and self.n_classes == 2

    def _decide(self, X, offset=None, n_jobs=None):
        """Decision values (n_samples, n_classes)."""
        rows = read_rows(X, self.n_features, self.feature_names)
        offset = self._read_offset(offset, rows.n_rows)
        decision = np.empty((rows.n_rows, self.n_classes))

        def score(first, last):
            score_rows(self._by_feature, rows, self.intercept, offset, first, last, decision[first:last])

        run_blocks(score, decision.shape, n_jobs)
        return decision

    def _log_proba(self, X, offset=None, n_jobs=None):
        """ln p(c|x) of exclusive classes, ln p(y_c = 1|x) of independent ones.

        For class-conditional models of independent classes that is Bayes' rule with the training examples,
        equally likely, as p(x). That can exceed 1: it is cut off at 1 - 2**-53, the largest double below 1.
        """
        decision = self._decide(X, offset, n_jobs)
        if self.label_mode == "exclusive":
            return log_softmax(decision)
        if self.distribution == "class-conditional":
            return np.minimum(LOG_BELOW_ONE, decision + np.log(self.total_weight))
        return -np.logaddexp(0.0, -decision)

    def predict_log_proba(self, X: Matrix, offset: ArrayLike | None = None, n_jobs: int | None = None) -> np.ndarray:
        """Log of `predict_proba`.

        Parameters
        ----------
        X, offset, n_jobs :
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> log_proba = sl1max.fit(X, y).predict_log_proba([[1, 0], [0, 1]])
        >>> log_proba.shape, bool((log_proba <= 0).all())
        ((2, 2), True)
        """
        if self.trained_on_indicator:
            return self._log_proba(X, offset, n_jobs)
        if self.label_mode == "exclusive" or self.distribution == "class-conditional":
            return log_softmax(self._decide(X, offset, n_jobs))
        return log_softmax(self._log_proba(X, offset, n_jobs))

    def predict_proba(self, X: Matrix, offset: ArrayLike | None = None, n_jobs: int | None = None) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X, offset, n_jobs :
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            After training on a vector of labels each row sums to one. For independent classes too: p(y_c = 1|x), as
            `predict_proba_independent` gives it, is divided by its sum over the classes; of class-conditional models
            this is Bayes' rule for examples with one class each. After training on an indicator: p(c|x) of exclusive
            classes, p(y_c = 1|x) of independent ones.

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> sl1max.fit(X, y).predict_proba([[1, 0], [0, 1]]).sum(axis=1).round(6)
        array([1., 1.])
        """
        return np.exp(self.predict_log_proba(X, offset, n_jobs))

    def predict_proba_independent(
        self, X: Matrix, offset: ArrayLike | None = None, n_jobs: int | None = None
    ) -> np.ndarray:
        """p(y_c = 1|x) of independent classes; rows need not sum to one.

        Class-conditional models have no probability of their own for the rest: it is that of Bayes' rule with the
        training examples, equally likely, as p(x), and is cut off at 1 - 2**-53.

        Parameters
        ----------
        X, offset, n_jobs :
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> model = sl1max.fit(X, y, label_mode="independent")
        >>> model.predict_proba_independent([[1, 0], [0, 1]]).argmax(axis=1)
        array([1, 0])
        """
        if self.label_mode != "independent":
            raise ValueError('predict_proba_independent needs a model with label_mode="independent"')
        return np.exp(self._log_proba(X, offset, n_jobs))

    def predict(
        self, X: Matrix, offset: ArrayLike | None = None, n_jobs: int | None = None
    ) -> np.ndarray | sparse.csr_array:
        """The most likely label of each example, or an indicator if trained on one.

        No array (n_samples, n_classes) of scores is made.

        Parameters
        ----------
        X, offset, n_jobs :
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,), or ndarray or csr_array of int of shape (n_samples, n_classes)
            The indicator, sparse if that of the training set was, has ones where p(y_c = 1|x) > 0.5; with exclusive
            classes, a one for the most likely class.

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> sl1max.fit(X, y).predict([[1, 0], [0, 1]]).tolist()
        ['spam', 'ham']
        """
        if not self.trained_on_indicator:
            return self.classes[self._top(X, offset, 1, n_jobs)[0][:, 0]]
        if self.label_mode == "exclusive":
            best = self._top(X, offset, 1, n_jobs)[0][:, 0]
            one_each = np.ones(len(best), np.int64), best, np.arange(len(best) + 1)
            labels = sparse.csr_array(one_each, shape=(len(best), self.n_classes))
        else:
            rows = read_rows(X, self.n_features, self.feature_names)
            labels = self._predict_indicator(rows, self._read_offset(offset, rows.n_rows), n_jobs)
        return labels if self.sparse_output else labels.toarray()

    def _predict_indicator(self, rows, offset, n_jobs):
        # p(y_c = 1|x) > 0.5, in terms of the decision values
        threshold = LOG_HALF - np.log(self.total_weight) if self.distribution == "class-conditional" else 0.0

        def find_likely(first, last):
            decision = np.empty((last - first, self.n_classes))
            score_rows(self._by_feature, rows, self.intercept, offset, first, last, decision)
            found, indices = np.nonzero(decision > threshold)
            return np.bincount(found, minlength=last - first), indices

        shape = (rows.n_rows, self.n_classes)
        counts, indices = map(np.concatenate, zip(*run_blocks(find_likely, shape, n_jobs), strict=True))
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return sparse.csr_array((np.ones(len(indices), np.int64), indices, indptr), shape=shape)

    @overload
    def predict_top_k(
        self, X: Matrix, k: int, *, return_decision: Literal[False] = False, n_jobs: int | None = None
    ) -> np.ndarray: ...

    @overload
    def predict_top_k(
        self, X: Matrix, k: int, *, return_decision: Literal[True], n_jobs: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]: ...

    @overload
    def predict_top_k(
        self, X: Matrix, k: int, *, return_decision: bool, n_jobs: int | None = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]: ...

    def predict_top_k(
        self, X: Matrix, k: int, *, return_decision: bool = False, n_jobs: int | None = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The k most likely classes of each example, best first.

        One row of scores is held at a time: no array (n_samples, n_classes) is made. Of a CSR matrix, which may be
        memory-mapped, a part is read at a time.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        k : int
            At most the number of classes.
        return_decision : bool
            Return the decision values too.
        n_jobs : int, optional
            Number of threads; the result does not depend on it.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Of classes with equal values the first comes first.
        decision : ndarray of shape (n_samples, k)
            Their decision values, one for each class even where there are two; if ``return_decision``.

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> sl1max.fit(X, y).predict_top_k([[1, 0], [0, 1]], 2).tolist()
        [['spam', 'ham'], ['ham', 'spam']]
        """
        if not isinstance(k, numbers.Integral) or not 1 <= k <= self.n_classes:
            raise ValueError(f"k={k!r} must be an integer from 1 to the number of classes, {self.n_classes}")
        order, decision = self._top(X, None, k, n_jobs)
        return (self.classes[order], decision) if return_decision else self.classes[order]

    def _top(self, X, offset, k, n_jobs):
        """Numbers and decision values of the k best classes of each example."""
        if offset is not None:
            rows = read_rows(X, self.n_features, self.feature_names)
            return self._top_of(rows, self._read_offset(offset, rows.n_rows), k, n_jobs)
        found = [
            self._top_of(rows, None, k, n_jobs) for rows in read_row_pieces(X, self.n_features, self.feature_names)
        ]
        order, decision = zip(*found, strict=True)
        return np.concatenate(order), np.concatenate(decision)

    def _top_of(self, rows, offset, k, n_jobs):
        order = np.empty((rows.n_rows, k), np.int32)
        decision = np.empty((rows.n_rows, k))

        def rank(first, last):
            top_rows(self._by_feature, rows, self.intercept, offset, first, last, order, decision)

        run_blocks(rank, (rows.n_rows, self.n_classes), n_jobs)
        return order, decision

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, for `sl1max.load`.

        Examples
        --------
        >>> import os, tempfile
        >>> import sl1max
        >>> path = os.path.join(tempfile.mkdtemp(), "spam.sl1max")
        >>> sl1max.fit([[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]).save(path)
        >>> sl1max.load(path).predict([[1, 0]]).tolist()
        ['spam']
        """
        write_model(self, path)

    def to_sklearn(self) -> LogisticRegression | OneVsRestClassifier:
        """Convert to a classifier of scikit-learn with the same predictions.

        Returns
        -------
        sklearn.linear_model.LogisticRegression or sklearn.multiclass.OneVsRestClassifier
            The latter for several independent classes.

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> sl1max.fit(X, y).to_sklearn().predict([[1, 0], [0, 1]]).tolist()
        ['spam', 'ham']
        """
        return to_sklearn(self)

    def to_sparse_dict(self, feature_names: Sequence[str] | None = None) -> dict[str, Any]:
        """Export weights and intercepts as lists and dictionaries of numbers and strings, e.g. for JSON.

        Parameters
        ----------
        feature_names : sequence of str of length n_features, optional
            Names of the features; otherwise their column numbers are written as strings.

        Returns
        -------
        dict
            ``distribution``, ``label_mode``, ``n_features``, ``total_weight`` and ``classes``, a list with ``label``,
            ``intercept`` and nonzero ``weights`` of each class.

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> found = sl1max.fit(X, y).to_sparse_dict(feature_names=["win", "hello"])
        >>> [one["label"] for one in found["classes"]]
        ['ham', 'spam']
        """
        return to_sparse_dict(self, feature_names)

    def top_features(
        self,
        label: Any,
        n: int = 10,
        *,
        by: Ranking = "weight",
        sign: Sign = "both",
        against: Any = None,
        X: Matrix | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Table:
        """List the most important features of a class.

        Parameters
        ----------
        label : object
            The class; for a model trained on an indicator the number of its column.
        n : int
            Maximum number of features. Features of weight zero are not listed.
        by : {"weight", "effect"}
            Order of the features, largest absolute value first. "effect" is the weight times the
            standard deviation of the feature in ``X``.
        sign : {"both", "positive", "negative"}
            "positive": only features with positive weight, which are evidence for the class. "negative": only those
            with negative weight.
        against : object, optional
            Another class, whose weights are subtracted.
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
            Examples for ``by="effect"``, such as the training set.
        feature_names : sequence of str of length n_features, optional
            Names for the column ``feature``, which otherwise holds column numbers.

        Returns
        -------
        Table
            Columns ``feature`` and ``weight``; for ``by="effect"`` also ``effect``.

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> model = sl1max.fit(X, y, distribution="joint")
        >>> model.top_features("spam", feature_names=["win", "hello"])["feature"].tolist()
        ['win']
        """
        names = self.feature_names if feature_names is None else feature_names
        return top_features(self, label, n, by=by, sign=sign, against=against, X=X, feature_names=names)

    def explain(
        self,
        x: Matrix,
        label: Any = None,
        *,
        against: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> Explanation:
        """Explain the score of one example by the contributions of its features.

        Parameters
        ----------
        x : array of shape (n_features,), or array, sparse matrix or frame of shape (1, n_features)
            The example.
        label : object, optional
            The class whose score is explained; unless given, the one with the greatest score.
        against : object, optional
            Another class: the difference of the two scores is explained. Unless given, and if there are two exclusive
            classes, the other one.
        feature_names : sequence of str of length n_features, optional
            Names for the column ``feature``, which otherwise holds column numbers.

        Returns
        -------
        Explanation
            Its intercept and contributions add up to the score.

        Examples
        --------
        >>> import sl1max
        >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
        >>> found = sl1max.fit(X, y, beta=0.1).explain([1, 0], feature_names=["win", "hello"])
        >>> found.title, found.contributions["feature"].tolist()
        ('class spam against ham', ['win'])
        """
        names = self.feature_names if feature_names is None else feature_names
        return explain(self, x, label, against=against, feature_names=names)


def run_blocks(task, shape, n_jobs):
    """Results of ``task(first, last)`` for blocks of the rows of a table, in threads if n_jobs is given."""
    n_rows, n_cols = shape
    size = max(64, BLOCK_CELLS // n_cols)
    blocks = [(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
    return map_threads(lambda block: task(*block), blocks, 1 if n_jobs is None else count_threads(n_jobs))


def log_softmax(values):
    """Log of exp(values) divided by its sum over each row."""
    values = values - values.max(axis=1, keepdims=True)
    return values - np.log(np.exp(values).sum(axis=1, keepdims=True))


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Model:
    """Read a model that `Model.save` wrote.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int
        Largest size of the model's arrays, and of the file; 4 GiB unless given. A small file can hold a large model.

    Returns
    -------
    Model
        Equal to the saved one in every attribute and prediction.

    Raises
    ------
    ModelFileError
        A ValueError. The file is empty, truncated, damaged, no model, larger than ``max_bytes``, or of a newer version
        of sl1max.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import sl1max
    >>> model = sl1max.fit([[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"])
    >>> path = os.path.join(tempfile.mkdtemp(), "spam.sl1max")
    >>> model.save(path)
    >>> sl1max.load(path).predict([[1, 0]])
    array(['spam'], dtype='<U4')
    """
    return Model(**read_model(path, [field.name for field in fields(Model)], max_bytes))
