"""
Elastic net: correlated features
================================

An L1 penalty chooses one of several similar features, and which one depends on chance. A small L2 penalty
beside it spreads the weight over all of them. The data are made here: three hidden signals, each seen
through five noisy copies.
"""

import matplotlib.pyplot as plt
import numpy as np

import sl1max

N_COPIES = 5
rng = np.random.default_rng(0)


def draw(n_samples):
    signal = rng.normal(size=(n_samples, 3))
    X = np.repeat(signal, N_COPIES, axis=1) + 0.4 * rng.normal(size=(n_samples, 3 * N_COPIES))
    return X, signal @ [2.0, -1.0, 0.0] + rng.logistic(size=n_samples) > 0


X, y = draw(300)
X_test, y_test = draw(5000)

# %%
# The weights of L1 and of the elastic net
# ----------------------------------------
#
# ``C`` and ``l1_ratio`` are those of scikit-learn's LogisticRegression.

figure, axes = plt.subplots(3, 1, sharex=True, figsize=(7, 6))
for axis, ratio in zip(axes, (1.0, 0.5, 0.05), strict=True):
    model = sl1max.MaxentClassifier(C=0.05, l1_ratio=ratio, tol=1e-6).fit(X, y)
    axis.bar(np.arange(X.shape[1]), model.coef_[0])
    axis.set_ylabel("weight")
    axis.set_title(f"l1_ratio={ratio:g}: test error {100 * (1 - model.score(X_test, y_test)):.1f} %")
axes[-1].set_xlabel("feature (five copies of each of three signals)")
figure.tight_layout()
plt.show()

# %%
# Choosing the ratio
# ------------------
#
# :class:`sl1max.MaxentClassifierCV` tries several ratios, each along its own path of strengths.

search = sl1max.MaxentClassifierCV(
    betas=8, l1_ratio=[0.1, 0.5, 1.0], beta_rule="count", scoring="neg_log_loss", cv=5
).fit(X, y)
print(search.best_params_)

# %%
# Known signs
# -----------
#
# If the copies of the first signal can only speak for the class and those of the second only against it,
# limits of the weights say so. The interval of a feature whose weight may not be negative has no upper end.

low = np.repeat([0.0, -np.inf, -np.inf], N_COPIES)
high = np.repeat([np.inf, 0.0, np.inf], N_COPIES)
model = sl1max.fit(X, y, beta=0.5, l2=0.1, min_weight=low, max_weight=high, tol=1e-6)
print(model.weights.toarray()[1].round(2))

# %%
# A relaxed fit
# -------------
#
# :func:`sl1max.relax` refits the chosen features without the penalty.

lasso = sl1max.fit(X, y, beta=3.0, tol=1e-6)
relaxed = sl1max.relax(lasso, X, y)
for name, model in (("lasso", lasso), ("relaxed", relaxed)):
    loss = -model.predict_log_proba(X_test)[np.arange(len(y_test)), y_test.astype(int)].mean()
    print(f"{name:8} {model.weights.nnz} weights, test loss {loss:.4f}")
