"""
A first look: web pages, a path, the words that matter
======================================================

4,199 pages of computer science departments are to be told apart: of a student, of the
faculty, of a course, of a project. The features are the words, 0 or 1 for each of 23,744.
"""

import matplotlib.pyplot as plt
import numpy as np

import sl1max
from sl1max.datasets import fetch_webkb
from sl1max.plot import plot_path, plot_top_features

data = fetch_webkb()
X_train, y_train, X_test, y_test = next(data.splits())  # the first of four folds
labels, labels_test = data.class_names[y_train], data.class_names[y_test]

model = sl1max.fit(X_train, labels, label_mode="independent")
print(model)

# %%
# The weights from all zero to many
# ---------------------------------
#
# :func:`sl1max.path` trains at falling values of beta, each model from the one before. The
# first words to get a weight are those that tell most.

betas = np.geomspace(10, 0.2, 10)
result = sl1max.path(X_train, labels, betas, label_mode="independent", tol=1e-3)
plot_path(result, "course", feature_names=data.feature_names)
plt.show()

# %%
# Which beta? On these test pages the error falls steeply until a few hundred weights are
# there and little after that; the default of 0.5 is on the flat part.
# :class:`sl1max.MaxentClassifierCV` chooses on the training set, by cross-validation.

predictions = [model.predict(X_test) for model in result.models]
errors = [100 * np.mean(predicted != labels_test) for predicted in predictions]
figure, axes = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
axes.plot(result.n_nonzero, errors, marker="o", color="#0072B2")
for k in range(0, len(betas), 3):
    axes.text(result.n_nonzero[k] + 15, errors[k] + 0.4, rf"$\beta$ = {betas[k]:.2g}")
axes.set_xlim(0, 1.2 * result.n_nonzero.max())
axes.set_xlabel("nonzero weights, all four classes")
axes.set_ylabel("test error in %")
axes.grid(color="#E4E4E4", linewidth=0.6)
plt.show()

# %%
# What one class has learnt
# -------------------------
#
# A larger beta keeps the words that are frequent enough to be believed. (With a smaller one rare
# words come to the top: the penalty of a weight grows with the spread of its feature.)

sparse = sl1max.fit(X_train, labels, label_mode="independent", beta=2)
plot_top_features(sparse, "course", 14, feature_names=data.feature_names)
plt.show()
