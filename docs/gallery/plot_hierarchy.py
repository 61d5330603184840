"""
Classes in a tree
=================

With many classes it pays to ask twice: first for the group, then for the class in it. The paper
names hierarchies of classifiers as a way to combine its models and leaves it open.
:class:`sl1max.HierarchyClassifier` puts a maximum-entropy model at each inner node of a tree of
classes; the probability of a class is the product of those of the branches that lead to it.
"""

import matplotlib.pyplot as plt
import numpy as np

from sl1max import HierarchyClassifier, MaxentClassifier
from sl1max.datasets import fetch_webkb

data = fetch_webkb()

# %%
# A tree, given or learnt
# -----------------------
#
# A tree is nested lists of labels. If none is given, it is learnt: the two classes, or groups of
# classes, whose mean pages differ from the mean of all pages in the most similar way are joined,
# again and again.

people_and_things = [["faculty", "student"], ["course", "project"]]
models = {
    "plain": MaxentClassifier(),
    "independent classes": MaxentClassifier(label_mode="independent"),
    "tree, given": HierarchyClassifier(tree=people_and_things),
    "tree, learnt": HierarchyClassifier(),
}
wrong = {name: [] for name in models}
loss = {name: [] for name in models}
for X_train, y_train, X_test, y_test in data.splits():
    for name, model in models.items():
        model.fit(X_train, data.class_names[y_train])
        log_proba = model.predict_log_proba(X_test)
        wrong[name].append(np.mean(log_proba.argmax(axis=1) != y_test))
        loss[name].append(-log_proba[np.arange(len(y_test)), y_test].mean())

print("learnt:", models["tree, learnt"].tree_)

# %%
# What it brings
# --------------
#
# Error and log loss over the four folds of WebKB. With only four classes the trees are about as
# accurate as the model without a tree.

for name in models:
    print(f"{name:20} {100 * np.mean(wrong[name]):5.2f} % error   log loss {np.mean(loss[name]):.3f}")

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.barh(list(models), [100 * np.mean(wrong[name]) for name in models], color="tab:blue")
ax.invert_yaxis()
ax.set_xlabel("wrong pages, % (4-fold cross-validation)")
plt.show()

# %%
# What a node has learnt
# ----------------------
#
# A node sees the examples of its own classes alone, and finds the words that tell these apart:
# here students from faculty.

tree = HierarchyClassifier(tree=people_and_things).fit(data.X_train, data.class_names[data.y_train])
root, people, things = tree.estimators_
pages_with = data.X_train.mean(axis=0)
order = np.argsort(people.coef_[0] * np.sqrt(pages_with * (1 - pages_with)))  # weight times spread
print("faculty:", *data.feature_names[order[:6]])
print("student:", *data.feature_names[order[::-1][:6]])

# %%
# Many classes
# ------------
#
# The tree is more useful on Reuters-21578. Stories with one topic, of the 37 topics with at least
# ten training stories: 6,496 for training, 2,520 for testing, 22,225 words (``"unigram"``).
#
# =================== ========= ======== ======= =================
# model               error, %  log loss weights training, s
# =================== ========= ======== ======= =================
# plain               8.21      0.287    2,215   10.0
# independent classes 7.30      0.262    2,854   1.0
# tree, learnt        7.42      0.295    1,688   0.5
# =================== ========= ======== ======= =================
#
# The learnt tree is about as accurate as one model per class, and has the fewest weights and the
# shortest training time. Its log loss is the largest: the product of many probabilities is
# overconfident. (Processor time of one core of an AMD EPYC;
# Python 3.11.7, numpy 2.4, scikit-learn 1.9; 16 November 2026.)
