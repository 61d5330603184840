"""
Three uses of the certificate
=============================

A solver that stops when its steps become small may be far from the optimum. A fit of sl1max ends
with a *duality gap*, an upper bound on the distance of the objective to its minimum.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import sl1max
from sl1max.datasets import fetch_webkb
from sl1max.plot import plot_convergence

data = fetch_webkb()
X_train, y_train, X_test, y_test = next(data.splits())
labels = data.class_names[y_train]

# %%
# 1. A stopping rule
# ------------------
#
# The gap bounds the true distance in every round. The fit stops when the gap is at most ``tol`` times
# the objective with all weights zero.

history = []
exact = sl1max.fit(X_train, labels, tol=1e-9, callback=history.append)
plot_convergence(history)
plt.show()

print(f"objective {exact.objective:.9f}, at most {exact.dual_gap:.0e} above the minimum")

# %%
# 2. Choosing the tolerance
# -------------------------
#
# Models with several tolerances are compared with the exact one. The true distance is always below the
# certified gap. The predicted labels of the 1,050 test pages no longer change at small tolerances.

print("tol    certified gap  true distance  weights  labels that differ")
for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
    model = sl1max.fit(X_train, labels, tol=tol)
    differ = np.sum(model.predict(X_test) != exact.predict(X_test))
    distance = model.objective - exact.objective
    print(f"{tol:.0e}{model.dual_gap:15.1e}{distance:15.1e}{model.weights.nnz:9d}{differ:20d}")

# %%
# 3. A warning
# ------------
#
# A fit that stops early warns, and the model holds its gap.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    short = sl1max.fit(X_train, labels, tol=1e-6, max_iter=3)
print(caught[0].category.__name__)
print(f"converged: {short.converged}, gap: {short.dual_gap:.2g}")

# %%
# Constraints
# -----------
#
# At the optimum, the mean of every feature under the model is within its penalty of the observed
# mean, and exactly at an end of that interval where the weight is not zero.

print(sl1max.constraints(exact, X_train, labels, label="course", feature_names=data.feature_names))
