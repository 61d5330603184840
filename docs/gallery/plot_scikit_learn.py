"""
Comparison with scikit-learn
============================

The same multinomial model with an L1 penalty, trained by scikit-learn's solver ``saga`` and by sl1max.
Both minimise the same function, so the objective after a given time can be compared.
"""

import warnings
from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from sl1max import MaxentClassifier
from sl1max.datasets import fetch_webkb

data = fetch_webkb()
X, y, X_test, y_test = next(data.splits())
words = np.flatnonzero(X.sum(axis=0) >= 200)  # few features, so that saga takes seconds
X, X_test = X[:, words], X_test[:, words]
C = 1.0
print(X.shape)


def objective(model):
    """Mean loss plus the L1 norm of the weights over C m."""
    log_proba = model.predict_log_proba(X)
    return -log_proba[np.arange(len(y)), y].mean() + np.abs(model.coef_).sum() / (C * len(y))


# %%
# Objective after a given time
# ----------------------------
#
# saga is stopped after an increasing number of passes, sl1max at decreasing tolerances.


def measure(models):
    found = []
    for model in models:
        start = process_time()
        model.fit(X, y)
        found.append((process_time() - start, objective(model)))
    return np.array(found).T


MaxentClassifier().fit(X, y)  # the first fit imports modules
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # saga warns that it did not converge
    saga = measure(LogisticRegression(l1_ratio=1, solver="saga", C=C, max_iter=n) for n in (5, 20, 80))
ours = measure(MaxentClassifier(C=C, tol=tol) for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5))
reference = MaxentClassifier(C=C, tol=1e-8).fit(X, y)
optimum = objective(reference)

for (seconds, reached), name in ((saga, "scikit-learn (saga)"), (ours, "sl1max")):
    plt.plot(seconds, reached / optimum - 1, marker="o", label=name)
plt.xscale("log")
plt.yscale("log")
plt.xlabel("processor seconds")
plt.ylabel("relative distance to the optimum")
plt.legend()
plt.show()

# %%
# Equal models
# ------------
#
# The exact model can be converted to scikit-learn. Predictions are equal.

converted = reference.model_.to_sklearn()
print(type(converted).__name__, (converted.predict(X_test) == reference.predict(X_test)).all())
print(f"test error {np.mean(reference.predict(X_test) != y_test):.3f}, {np.count_nonzero(reference.coef_)} weights")
