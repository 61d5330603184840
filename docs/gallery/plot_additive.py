"""
An additive model beside boosted trees
======================================

:class:`sl1max.AdditiveClassifier` has a score that is a sum of piecewise linear functions of one
column each: it can be read off curves. How much accuracy does that cost, beside scikit-learn's
``HistGradientBoostingClassifier``, which mixes the columns?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sl1max

rows = []
for load in (load_breast_cancer, load_wine):
    data = load()
    models = {
        "additive": sl1max.AdditiveClassifier(beta=0.5, tol=1e-3),
        "boosted trees": HistGradientBoostingClassifier(max_iter=50),
        "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }
    for name, model in models.items():
        found = cross_validate(model, data.data, data.target, cv=5, scoring=("accuracy", "neg_log_loss"))
        rows.append((load.__name__[5:], name, found["test_accuracy"].mean(), -found["test_neg_log_loss"].mean()))
for data_set, name, accuracy, loss in rows:
    print(f"{data_set:14} {name:14} accuracy {accuracy:.3f}, log loss {loss:.3f}")

# %%
# The model
# ---------
#
# Of some 30,000 hinges and linear terms few have a weight. The certificate covers all.

data = load_breast_cancer(as_frame=True)
model = sl1max.AdditiveClassifier(beta=0.5).fit(data.data, data.target)
print(f"{len(model.features_)} of {model.n_features_expanded_:,} features, dual gap {np.max(model.dual_gap_):.1e}")

# %%
# What the columns add to the score
# ---------------------------------

curves = {name: model.response_curve(name) for name in data.data.columns}
widest = sorted(curves, key=lambda name: -np.ptp(curves[name]["response"]))[:6]
_, axes = plt.subplots(2, 3, figsize=(9.6, 4.8), layout="constrained", sharey=True)
for ax, name in zip(axes.flat, widest, strict=True):
    ax.plot(curves[name]["value"], curves[name]["response"])
    ax.set_xlabel(name)
for ax in axes[:, 0]:
    ax.set_ylabel("log-odds of benign")
plt.show()
