"""
Explaining predictions
======================

A linear model with few weights can be explained exactly: the score of an example is the intercept
plus one contribution per feature. This example shows the contributions for one page.
"""

import matplotlib.pyplot as plt
import numpy as np

import sl1max
from sl1max.datasets import fetch_webkb

data = fetch_webkb()
X_train, y_train, X_test, y_test = next(data.splits())
labels, labels_test = data.class_names[y_train], data.class_names[y_test]
words = data.feature_names
model = sl1max.fit(X_train, labels, label_mode="independent", beta=1)

# %%
# A confident mistake
# -------------------
#
# Among the pages with a wrong prediction, take the one with the highest probability.

proba = model.predict_proba(X_test)
predicted = model.predict(X_test)
confidence = np.where(predicted != labels_test, proba.max(axis=1), 0)
page = X_test[[confidence.argmax()]]
truth, guess = labels_test[confidence.argmax()], predicted[confidence.argmax()]
print(f"predicted: {guess} ({confidence.max():.2f}), label: {truth}")

# %%
# Contributions
# -------------
#
# ``explain`` lists value times weight for each word of the page. With ``against`` it compares two
# classes: positive contributions are evidence for the first one.

explanation = model.explain(page, guess, against=truth, feature_names=words)
table = explanation.contributions
total = table["contribution"].sum()
print(f"score {explanation.score:.2f} = {explanation.intercept:.2f} + {total:.2f}")

shown = slice(0, 12)
values = table["contribution"][shown][::-1]
colors = np.where(values > 0, "#0072B2", "#D55E00")
plt.barh(table["feature"][shown][::-1].astype(str), values, color=colors)
plt.xlabel(f"contribution to the score of {guess} against {truth}")
plt.grid(axis="y", visible=False)
plt.show()

# %%
# Features of a class
# -------------------
#
# The effect is the weight times the standard deviation of the word: frequent words with a moderate
# weight have a larger effect than rare ones with a large weight.

print(model.top_features(guess, 6, by="effect", sign="positive", X=X_train, feature_names=words))

# %%
# Other tools
# -----------
#
# ``to_sklearn`` returns the equivalent scikit-learn model, for tools that expect one. With shap, for instance,
# ``LinearExplainer`` gives the contributions relative to an average page: weight times the value less its mean. Only
# the words with a weight are needed, so that the pages fit in a dense array.

exclusive = sl1max.fit(X_train, labels, beta=1)
equivalent = exclusive.to_sklearn()
used = np.flatnonzero(equivalent.coef_.any(axis=0))
pages = X_train[:, used].toarray()
relative = equivalent.coef_[:, used] * (page[:, used].toarray() - pages.mean(axis=0))
print(f"{used.size} of {X_train.shape[1]} words have a weight")
try:
    import shap
except ImportError:
    print("shap is not installed (pip install shap)")
else:
    masker = shap.maskers.Independent(pages, max_samples=len(pages))
    explainer = shap.LinearExplainer((equivalent.coef_[:, used], equivalent.intercept_), masker)
    values = explainer.shap_values(page[:, used].toarray())[0].T
    print("largest difference from weight * (value - mean):", abs(values - relative).max().round(9))

# %%
# A table of weights like that of eli5 needs no other package: one column of words for each class, those with the
# largest weights first.

columns = [
    model.top_features(label, 8, sign="positive", feature_names=words)["feature"].tolist() for label in model.classes
]
print("".join(f"{label:<16}" for label in model.classes))
for row in zip(*columns, strict=True):
    print("".join(f"{word:<16}" for word in row))

# %%
# :func:`sl1max.report` writes these tables, the confusion matrix, calibration and more to one HTML file.
