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
from sl1max.metrics import calibration_curve, calibration_error

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
# Points above the diagonal: predictions are correct more often than their probability says, so the model is
# underconfident. :func:`sl1max.plot.plot_calibration` draws such a curve for one model.

plt.plot([0.3, 1], [0.3, 1], color="0.6", linewidth=1, label="calibrated")
for beta, model in models.items():
    predicted, observed, _ = calibration_curve(labels_test, model.predict_proba(X_test), labels=model.classes, n_bins=8)
    plt.plot(predicted, observed, marker="o", label=f"beta = {beta:g}")
plt.xlabel("predicted probability")
plt.ylabel("share of correct predictions")
plt.legend()
plt.show()
