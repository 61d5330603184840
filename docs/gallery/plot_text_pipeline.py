"""
Text classification in a pipeline
=================================

:class:`sl1max.MaxentClassifier` follows scikit-learn's conventions, so it can be the last step of a
pipeline that starts with raw texts. A grid search then chooses the options of its steps.
"""

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sl1max import MaxentClassifier
from sl1max.datasets import fetch_webkb

# %%
# Texts
# -----
#
# The data set holds the words of each page, not its text. Joining the words gives a text that
# serves for this example.

data = fetch_webkb()
X_train, y_train, X_test, y_test = next(data.splits())


def texts_of(X):
    return [" ".join(data.feature_names[X[[i]].indices]) for i in range(X.shape[0])]


texts, texts_test = texts_of(X_train), texts_of(X_test)
labels, labels_test = data.class_names[y_train], data.class_names[y_test]
print(texts[0][:60])

# %%
# The pipeline
# ------------
#
# The vectoriser makes a sparse matrix of 0 and 1, the usual input of a maximum-entropy model.

pipeline = make_pipeline(
    CountVectorizer(binary=True, min_df=5, token_pattern=r"[a-z#]+"),
    MaxentClassifier(label_mode="independent", tol=1e-3),
)
search = GridSearchCV(
    pipeline,
    {"maxentclassifier__beta": [0.25, 0.5, 1.0, 2.0]},
    cv=3,
)
search.fit(texts, labels)
print(search.best_params_)
print(f"test accuracy: {search.score(texts_test, labels_test):.3f}")

# %%
# The mean accuracy of the folds and its standard deviation:

results = search.cv_results_
betas = results["param_maxentclassifier__beta"].astype(float)
plt.errorbar(betas, results["mean_test_score"], results["std_test_score"], marker="o", capsize=4)
plt.xscale("log")
plt.xticks([0.25, 0.5, 1, 2], ["0.25", "0.5", "1", "2"])
plt.minorticks_off()
plt.xlabel("beta")
plt.ylabel("accuracy (3-fold cross-validation)")
plt.show()

# %%
# The names of the features come from the vectoriser.

vectorizer, classifier = search.best_estimator_
names = vectorizer.get_feature_names_out()
counts = vectorizer.transform(texts)
for label in classifier.classes_:
    top = classifier.top_features(label, 5, by="effect", sign="positive", X=counts, feature_names=names)
    print(f"{label:8}", *top["feature"])
