"""
A first look: a path and the words of a class
=============================================

WebKB has 4,199 pages of computer science departments in four classes: student, faculty, course and
project. The features are 23,744 words: 1 if a page contains the word, else 0.
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
# A regularisation path
# ---------------------
#
# :func:`sl1max.path` trains at decreasing values of beta. Each fit starts from the model before it. The
# most informative words get a weight first.

betas = np.geomspace(10, 0.2, 10)
result = sl1max.path(X_train, labels, betas, label_mode="independent", tol=1e-3)
plot_path(result, "course", feature_names=data.feature_names)
plt.show()

# %%
# The test error decreases quickly up to a few hundred weights and slowly afterwards.
# :class:`sl1max.MaxentClassifierCV` chooses beta on the training set, by cross-validation.

predictions = [model.predict(X_test) for model in result.models]
errors = [100 * np.mean(predicted != labels_test) for predicted in predictions]
figure, axes = plt.subplots()
axes.plot(result.n_nonzero, errors, marker="o")
for k in range(0, len(betas), 3):
    axes.text(result.n_nonzero[k] + 15, errors[k] + 0.4, rf"$\beta$ = {betas[k]:.2g}")
axes.set_xlim(0, 1.2 * result.n_nonzero.max())
axes.set_xlabel("nonzero weights, all four classes")
axes.set_ylabel("test error in %")
plt.show()

# %%
# The words of one class
# ----------------------
#
# A larger beta selects frequent words. With a smaller one, rare words have the largest weights, because the
# penalty of a weight grows with the standard deviation of its feature.

sparse = sl1max.fit(X_train, labels, label_mode="independent", beta=2)
plot_top_features(sparse, "course", 14, feature_names=data.feature_names)
plt.show()
