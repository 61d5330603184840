"""The fitted model: sparse weights, scores, probabilities, predictions."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sl1max.inputs import read_offset, read_rows
from sl1max.moments import IN_CLASS

LOG_HALF = np.log(0.5)
BLOCK_CELLS = 1 << 20  # scores that `top_k` holds at once


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A maximum-entropy classifier, as `sl1max.fit` returns it.

    ``objective``, ``objective_zero``, ``dual_gap``, ``n_iter`` and ``converged`` are single numbers when the
    classes share one objective (joint or conditional, exclusive classes), otherwise arrays (n_classes,).

    Attributes
    ----------
    distribution : {"conditional", "joint", "class-conditional"}
    kind : {"exclusive", "independent"}
        Whether each example has one class, or each class is a yes-or-no question of its own.
    indicator : bool
        Trained on an indicator matrix, not on a vector of labels.
    classes : ndarray of shape (n_classes,)
        Class labels; column numbers for an indicator.
    weights : csr_array of shape (n_classes, n_features)
        lambda; for independent classes lambda_1 - lambda_0, see `weights_parts`.
    intercept : ndarray of shape (n_classes,)
        What `decision_function` adds to the scores. Conditional and joint: b_c, for independent classes
        b_1 - b_0. Class-conditional: ln p~(c) - ln Z(c). Infinite for an independent class that holds all or
        none of the training examples.
    log_z : float, ndarray of shape (n_classes,) or None
        Log of the normaliser. Class-conditional: ln Z(c). Joint: ln Z, one per class if they are independent.
        Conditional: None, there is one for each example.
    class_prior : ndarray of shape (n_classes,)
        p~(c), the share of each class in the training set.
    mass : float
        Number of training examples, or the total of their weights.
    objective : float or ndarray
        The penalised loss at the end.
    objective_zero : float or ndarray
        The same with all weights zero and the intercept fitted.
    dual_gap : float or ndarray
        Certified upper bound on how far the objective is above its minimum.
    n_iter : int or ndarray
        Rounds (``solver="auto"``) or single updates (``solver="sequential"``).
    converged : bool or ndarray
        dual_gap <= tol * objective_zero.
    beta : float or None
        None if it was an array.
    beta_rule, solver, tol :
        As given to `sl1max.fit`.
    """

    distribution: str
    kind: str
    indicator: bool
    classes: np.ndarray
    weights: sparse.csr_array
    intercept: np.ndarray
    log_z: float | np.ndarray | None
    class_prior: np.ndarray
    mass: float
    objective: float | np.ndarray
    objective_zero: float | np.ndarray
    dual_gap: float | np.ndarray
    n_iter: int | np.ndarray
    converged: bool | np.ndarray
    beta: float | None
    beta_rule: str
    solver: str
    tol: float
    parts: tuple[sparse.csr_array, sparse.csr_array] | None

    @property
    def n_classes(self) -> int:
        return self.weights.shape[0]

    @property
    def n_features(self) -> int:
        return self.weights.shape[1]

    def __repr__(self):
        state = "converged" if np.all(self.converged) else "not converged"
        return (
            f"<sl1max.Model: {self.distribution}, {self.n_classes} {self.kind} classes, "
            f"{self.n_features} features, {self.weights.nnz} weights, {state}>"
        )

    def weights_parts(self):
        """Weights of the class and of its non-class, (lambda_1, lambda_0), two csr_arrays.

        For independent classes only; their difference is ``weights``.
        """
        if self.parts is None:
            raise ValueError("weights_parts: exclusive classes have one set of weights, `weights`")
        return self.parts

    def part(self, side):
        """Weights of one side, ``IN_CLASS`` or ``NON_CLASS``."""
        if self.parts is None:
            return self.weights
        return self.parts[0] if side == IN_CLASS else self.parts[1]

    def scores(self, X):
        """lambda_c . x_i, an array (n_samples, n_classes)."""
        scores = read_rows(X, self.n_features) @ self.weights.T
        return scores.toarray() if sparse.issparse(scores) else scores

    def decision_function(self, X, offset=None):
        """One column per class; the greater, the likelier.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_classes), optional
            Added to the scores, as in training.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Class-conditional: lambda_c . x - ln Z(c) + ln p~(c). Joint, exclusive: ln p(x, c) up to one
            constant. Conditional, exclusive: the scores with the intercept. Otherwise the log-odds.
        """
        decision = self.scores(X) + self.intercept
        if offset is not None:
            cancels = self.distribution == "conditional" and self.kind == "exclusive"
            decision += read_offset(offset, *decision.shape, per_example_cancels=cancels)
        return decision

    def log_proba(self, X, offset=None):
        """Log of the posterior p(c|x) (exclusive classes) or of p(y_c = 1|x) (independent classes).

        For class-conditional models of independent classes that is Bayes' rule with the training examples,
        equally likely, as p(x); it is cut off at 0.
        """
        decision = self.decision_function(X, offset)
        if self.kind == "exclusive":
            return log_softmax(decision)
        if self.distribution == "class-conditional":
            return np.minimum(0.0, decision + np.log(self.mass))
        return -np.logaddexp(0.0, -decision)

    def proba(self, X, offset=None):
        """Exponential of `log_proba`."""
        return np.exp(self.log_proba(X, offset))

    def predict(self, X, offset=None):
        """The most likely class of each example; an indicator if trained on one with independent classes.

        Returns
        -------
        ndarray of shape (n_samples,) or csr_array of int of shape (n_samples, n_classes)
            The indicator has ones where p(y_c = 1|x) > 0.5.
        """
        if self.indicator and self.kind == "independent":
            return sparse.csr_array((self.log_proba(X, offset) > LOG_HALF).astype(np.int64))
        return self.classes[self.decision_function(X, offset).argmax(axis=1)]

    def log_posterior(self, X, offset=None):
        """Log of probabilities that sum to one over the classes, whatever the model.

        Exclusive classes: `log_proba`. Independent classes: p(y_c = 1|x) divided by its sum over the classes;
        class-conditional: Bayes' rule for examples that have one class each.
        """
        if self.kind == "exclusive" or self.distribution == "class-conditional":
            return log_softmax(self.decision_function(X, offset))
        return log_softmax(self.log_proba(X, offset))

    def top_k(self, X, k):
        """The k classes with the greatest decision values for each example, best first.

        Some rows are scored at a time: no array (n_samples, n_classes) is made.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        k : int
            At most the number of classes.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Of classes with equal values the first comes first.
        decision : ndarray of shape (n_samples, k)
            Their values of `decision_function`.
        """
        if not isinstance(k, numbers.Integral) or not 1 <= k <= self.n_classes:
            raise ValueError(f"k={k!r} must be an integer from 1 to the number of classes, {self.n_classes}")
        X = read_rows(X, self.n_features)
        X = X.tocsr() if sparse.issparse(X) else X
        order = np.empty((X.shape[0], k), np.intp)
        best = np.empty((X.shape[0], k))
        n_rows = max(1, BLOCK_CELLS // self.n_classes)
        for low in range(0, X.shape[0], n_rows):
            block = slice(low, low + n_rows)
            decision = self.decision_function(X[block])
            order[block] = np.argsort(-decision, axis=1, kind="stable")[:, :k]
            best[block] = np.take_along_axis(decision, order[block], axis=1)
        return self.classes[order], best

    def save(self, path):
        """Write the model to one file, for `sl1max.load`; see `sl1max.persistence.save`."""
        from sl1max.persistence import save

        save(self, path)

    def to_sklearn(self):
        """The LogisticRegression that predicts the same; see `sl1max.persistence.to_sklearn`."""
        from sl1max.persistence import to_sklearn

        return to_sklearn(self)

    def top_features(self, label, n=10, *, feature_names=None):
        """The features with the greatest weights for a class; see `sl1max.explain.top_features`."""
        from sl1max.explain import top_features

        return top_features(self, label, n, feature_names=feature_names)

    def constraints(self, X, y, **options):
        """What training asked of the model, and what came of it; see `sl1max.explain.constraints`."""
        from sl1max.explain import constraints

        return constraints(self, X, y, **options)


def log_softmax(values):
    """Log of exp(values) divided by its sum over each row."""
    values = values - values.max(axis=1, keepdims=True)
    return values - np.log(np.exp(values).sum(axis=1, keepdims=True))
