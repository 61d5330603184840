"""
Choosing beta by cross-validation
=================================

:class:`sl1max.MaxentClassifierCV` follows a path of decreasing betas in each fold. This example
compares its two selection rules.
"""

import matplotlib.pyplot as plt
import numpy as np

from sl1max import MaxentClassifierCV
from sl1max.datasets import fetch_webkb
from sl1max.plot import plot_cv

data = fetch_webkb()
X_train, y_train, X_test, y_test = next(data.splits())
labels, labels_test = data.class_names[y_train], data.class_names[y_test]

# %%
# The scores of all betas
# -----------------------
#
# The points are mean scores of three folds, the bars their standard errors. The log loss judges the
# probabilities; the default score is the accuracy.

options = {
    "betas": np.geomspace(4, 0.125, 6),
    "label_mode": "independent",
    "scoring": "neg_log_loss",
    "cv": 3,
    "tol": 1e-3,
}
best = MaxentClassifierCV(**options).fit(X_train, labels)
plot_cv(best)
plt.show()

# %%
# Two rules
# ---------
#
# ``"best"`` takes the beta with the best mean score. ``"one_standard_error"`` takes the largest beta
# whose score is within one standard error of it. The model is sparser, at little cost.

sparse = MaxentClassifierCV(**options, selection="one_standard_error").fit(X_train, labels)
for name, search in {"best": best, "one_standard_error": sparse}.items():
    error = 100 * np.mean(search.predict(X_test) != labels_test)
    print(f"{name:20} beta {search.beta_:.3f}{search.model_.weights.nnz:6d} weights, test error {error:.1f} %")
