"""Export of models to scikit-learn's classifiers and to dictionaries for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sl1max.model._explain import name_features, read_names

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    from sl1max.model._model import Model


def to_sklearn(model: Model) -> LogisticRegression | OneVsRestClassifier:
    """Convert to a classifier of scikit-learn with the same predictions.

    Parameters
    ----------
    model : Model

    Returns
    -------
    sklearn.linear_model.LogisticRegression or sklearn.multiclass.OneVsRestClassifier
        Fitted. Exclusive classes give a LogisticRegression with dense weights, whatever the distribution, since
        their posterior is a softmax of linear scores; so does a single independent class, with the labels 0 and 1.
        Several independent classes of a conditional or joint model give a OneVsRestClassifier of
        LogisticRegressions with sparse weights. Its parameters are scikit-learn's defaults, so fitting it again trains
        another model.

    Raises
    ------
    ValueError
        The model is class-conditional with independent classes: its posterior is not logistic.
    ImportError
        scikit-learn is not installed.

    Examples
    --------
    >>> import sl1max
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> sl1max.fit(X, y).to_sklearn().predict(X).tolist()
    ['spam', 'spam', 'ham', 'ham']
    """
    if model.label_mode == "independent" and model.distribution == "class-conditional":
        raise ValueError(
            "to_sklearn: a class-conditional model of independent classes has no equivalent in scikit-learn, since its "
            "posterior is cut off at 1"
        )
    try:
        import sklearn.linear_model  # noqa: F401
    except ImportError as error:
        raise ImportError("to_sklearn needs scikit-learn >= 1.6: pip install scikit-learn") from error
    n_iter = np.broadcast_to(np.asarray(model.n_iter, np.int32), (model.n_classes,))
    weights, intercept = model.weights, model.intercept
    if model.label_mode == "independent" and model.n_classes > 1:
        parts = [
            _make_logistic(model, np.array([0, 1]), sparse.csr_matrix(weights[[c]]), intercept[[c]], n_iter[[c]])
            for c in range(model.n_classes)
        ]
        return _make_one_vs_rest(model, parts)
    if model.label_mode == "independent":
        return _make_logistic(model, np.array([0, 1]), weights.toarray(), intercept.copy(), n_iter)
    n_iter = np.atleast_1d(np.asarray(model.n_iter, np.int32))
    if model.n_classes == 2:
        difference = (weights[[1]] - weights[[0]]).toarray()
        return _make_logistic(model, model.classes.copy(), difference, np.diff(intercept), n_iter)
    return _make_logistic(model, model.classes.copy(), weights.toarray(), intercept.copy(), n_iter)


def _make_logistic(model, classes, weights, intercept, n_iter):
    from sklearn.linear_model import LogisticRegression

    logistic = LogisticRegression()
    logistic.classes_ = classes
    logistic.coef_ = weights
    logistic.intercept_ = intercept
    logistic.n_features_in_ = model.n_features
    logistic.n_iter_ = n_iter.copy()
    return logistic


def _make_one_vs_rest(model, parts):
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import LabelBinarizer

    together = OneVsRestClassifier(parts[0])
    together.estimators_ = parts
    together.n_features_in_ = model.n_features
    if model.trained_on_indicator:
        binarizer = LabelBinarizer().fit(np.eye(model.n_classes, dtype=np.int64))
        binarizer.classes_ = np.arange(model.n_classes)
    else:
        binarizer = LabelBinarizer().fit(model.classes)
        binarizer.y_type_ = "multiclass"  # also for two classes: each has its own regression
    together.label_binarizer_ = binarizer
    together.classes_ = binarizer.classes_
    return together


def to_sparse_dict(model: Model, feature_names: Sequence[str] | None = None) -> dict[str, Any]:
    """Export weights and intercepts as lists and dictionaries of numbers and strings.

    Parameters
    ----------
    model : Model
    feature_names : sequence of str of length n_features, optional
        Names of the features; otherwise their column numbers are written as strings.

    Returns
    -------
    dict
        ``distribution``, ``label_mode``, ``n_features``, ``total_weight`` and ``classes``, a list with a dictionary for
        each class: its ``label``, ``intercept``, and ``weights``, a dictionary of the nonzero ones by feature. The
        decision value of a class is its intercept plus the sum of weight times value. Infinite intercepts, of classes
        that had all or none of the examples, are the strings "Infinity" and "-Infinity", since JSON lacks them.

    Examples
    --------
    >>> import json
    >>> import sl1max
    >>> X, y = [[1, 0], [1, 1], [0, 1], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> found = sl1max.fit(X, y, distribution="joint").to_sparse_dict(feature_names=["win", "hello"])
    >>> [(one["label"], list(one["weights"])) for one in json.loads(json.dumps(found))["classes"]]
    [('ham', ['win']), ('spam', ['win'])]
    """
    names = read_names(model.feature_names if feature_names is None else feature_names, model.n_features)
    classes = []
    for c, label in enumerate(model.classes.tolist()):
        row = model.weights[[c]]
        features = map(str, np.asarray(name_features(row.indices, names)).tolist())
        intercept: float | str = float(model.intercept[c])
        if np.isinf(model.intercept[c]):
            intercept = "Infinity" if model.intercept[c] > 0 else "-Infinity"
        weights = dict(zip(features, row.data.tolist(), strict=True))
        classes.append({"label": label, "intercept": intercept, "weights": weights})
    return {
        "distribution": model.distribution,
        "label_mode": model.label_mode,
        "n_features": model.n_features,
        "total_weight": float(model.total_weight),
        "classes": classes,
    }
