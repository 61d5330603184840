"""
Calibration of the probabilities
================================

A classifier is calibrated if, among examples that it gives a probability of 70 %, about 70 % have
the class. A large penalty moves probabilities towards the class frequencies. This example measures it.
"""

import matplotlib.pyplot as plt
import numpy as np

import sl1max
from sl1max.datasets import fetch_webkb
from sl1max.metrics import calibration_error
from sl1max.plot import plot_calibration

data = fetch_webkb()
X_train, y_train, X_test, y_test = next(data.splits())
labels, labels_test = data.class_names[y_train], data.class_names[y_test]

# %%
# Three strengths of the penalty
# ------------------------------
#
# The calibration error is the mean distance between predicted and observed frequencies. The log loss
# combines calibration and accuracy.

models = {beta: sl1max.fit(X_train, labels, beta=beta) for beta in (0.1, 0.5, 4.0)}
print("beta  weights  error  log loss  calibration error")
for beta, model in models.items():
    proba = model.predict_proba(X_test)
    error = np.mean(model.predict(X_test) != labels_test)
    log_loss = -np.log(proba[np.arange(len(y_test)), y_test]).mean()
    miscalibration = calibration_error(labels_test, proba, labels=model.classes)
    print(f"{beta:4g}{model.weights.nnz:9d}{error:7.3f}{log_loss:10.3f}{miscalibration:19.3f}")

# %%
# Calibration curves
# ------------------
#
# Points above the diagonal: the class is more frequent than predicted, so the model is underconfident.

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.6), sharey=True)
for ax, (beta, model) in zip(axes, models.items(), strict=True):
    plot_calibration(labels_test, model.predict_proba(X_test), labels=model.classes, ax=ax)
    ax.set_title(f"beta = {beta:g}", loc="left")
plt.show()
