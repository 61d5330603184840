"""
What the certificate tells
==========================

A solver that stops because little changes may be far from the optimum. A fit of sl1max ends
with a *duality gap*: the objective is certainly no further than that above its minimum. Three
things it is good for.
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
# 1. To know when to stop
# -----------------------
#
# The gap is above the true distance at every round, far above it at first. ``tol`` says at
# which share of the objective without weights it is small enough.

history = []
exact = sl1max.fit(X_train, labels, tol=1e-9, callback=history.append)
plot_convergence(history)
plt.show()

print(f"objective {exact.objective:.9f}, at most {exact.dual_gap:.0e} above the minimum")

# %%
# 2. To know how exact is exact enough
# ------------------------------------
#
# Models of several tolerances beside the exact one. Each is within its certificate, and the
# labels of the 1,050 test pages settle long before the last digits do.

print("tol    certified gap  true distance  weights  labels that differ")
for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
    model = sl1max.fit(X_train, labels, tol=tol)
    differ = np.sum(model.predict(X_test) != exact.predict(X_test))
    distance = model.objective - exact.objective
    print(f"{tol:.0e}{model.dual_gap:15.1e}{distance:15.1e}{model.weights.nnz:9d}{differ:20d}")

# %%
# 3. To be told when it did not work
# ----------------------------------
#
# A fit that has to end early warns, and the model holds the gap that is left.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    short = sl1max.fit(X_train, labels, tol=1e-6, max_iter=3)
print(caught[0].category.__name__)
print(f"converged: {short.converged}, gap: {short.dual_gap:.2g}")

# %%
# The constraints behind it
# -------------------------
#
# At the optimum the model's expectation of every feature is within its beta of what was
# observed, and exactly at an end of that interval where the weight is not zero.

print(sl1max.constraints(exact, X_train, labels, label="course", feature_names=data.feature_names))
