"""
Thousands of classes
====================

With independent or class-conditional models each class is a separate problem. No array of
examples × classes is made, and a rare class takes milliseconds. This example measures the time
against the number of classes; :doc:`/scale` has tasks with millions of examples.
"""

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import sl1max

# %%
# Synthetic words in context
# --------------------------
#
# Each example has eight binary features, two of which depend on its class. The frequencies of the
# classes follow a power law, as in natural language.

N_FEATURES = 3000


def make_examples(rng, n_samples, n_classes):
    frequency = 1.0 / np.arange(1, n_classes + 1)
    y = rng.choice(n_classes, n_samples, p=frequency / frequency.sum())
    noise = rng.integers(0, N_FEATURES, (n_samples, 6))
    signal = (np.array([31, 47]) * y[:, None] + rng.integers(0, 3, (n_samples, 2))) % N_FEATURES
    columns = np.hstack([noise, signal]).ravel()
    rows = np.repeat(np.arange(n_samples), 8)
    X = sparse.csr_array((np.ones(columns.size), (rows, columns)), shape=(n_samples, N_FEATURES))
    X.data[:] = 1.0
    return X, y


# %%
# Time per number of classes
# --------------------------
#
# 10,000 examples to train on. The time grows about linearly with the number of classes.

MODELS = {
    "class-conditional": {"distribution": "class-conditional"},
    "conditional, independent": {"label_mode": "independent"},
}
sizes = (100, 400, 1000)
seconds = {name: [] for name in MODELS}
for n_classes in sizes:
    X, y = make_examples(np.random.default_rng(0), 12000, n_classes)
    X_train, y_train, X_test, y_test = X[:10000], y[:10000], X[10000:], y[10000:]
    for name, options in MODELS.items():
        start = process_time()
        model = sl1max.fit(X_train, y_train, tol=1e-2, **options)
        seconds[name].append(process_time() - start)
        top = model.predict_top_k(X_test, 5)
        error = np.mean(top[:, 0] != y_test), np.mean(~(top == y_test[:, None]).any(axis=1))
        print(
            f"{name:25}{len(model.classes):5d} classes{seconds[name][-1]:6.1f} s{model.weights.nnz:7d} weights"
            f"   error {error[0]:.2f}, not among the best five {error[1]:.2f}"
        )

for name, times in seconds.items():
    plt.plot(sizes, times, marker="o", label=name)
plt.xlabel("classes")
plt.ylabel("processor seconds")
plt.ylim(bottom=0)
plt.legend()
plt.show()

# %%
# Adding a class
# --------------
#
# A class can be removed, added or retrained while all others stay as they are.

smaller = sl1max.without_class(model, 7)
larger = sl1max.with_class(smaller, 7, X_train, y_train == 7)
print(len(smaller.classes), len(larger.classes), (larger.weights != model.weights).nnz)
