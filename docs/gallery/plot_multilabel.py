"""
Examples with several labels
============================

If ``y`` is an indicator matrix, each class is a binary problem: examples may have several labels or
none. This example compares such a model with one of exclusive classes, whose probabilities sum to one.
"""

import matplotlib.pyplot as plt
import numpy as np

import sl1max
from sl1max.metrics import optimal_f_measure, top_class_error

# %%
# Synthetic texts
# ---------------
#
# Each topic has 15 words that are more frequent in texts with this topic. A text has up to three
# topics, and some have none.

N_TOPICS, N_WORDS = 8, 400


def make_texts(rng, n_texts):
    Y = (rng.random((n_texts, N_TOPICS)) < rng.uniform(0.1, 0.35, N_TOPICS)).astype(int)
    rate = np.full((n_texts, N_WORDS), 0.04)
    for topic in range(N_TOPICS):
        rate[:, 15 * topic : 15 * (topic + 1)] += 0.2 * Y[:, [topic]]
    return (rng.random((n_texts, N_WORDS)) < rate).astype(float), Y


rng = np.random.default_rng(0)
X, Y = make_texts(rng, 2000)
X_test, Y_test = make_texts(rng, 1000)
print("labels per text:", np.bincount(Y.sum(axis=1)))

# %%
# Independent and exclusive classes
# ---------------------------------
#
# The F-measure counts pairs of text and topic. A threshold on the score decides which pairs are
# predicted; :func:`sl1max.metrics.optimal_f_measure` uses the best one.

models = {
    "independent": sl1max.fit(X, Y),
    "exclusive": sl1max.fit(X, Y, label_mode="exclusive"),
}
for name, model in models.items():
    scores = model.predict_log_proba(X_test)
    f_measure = optimal_f_measure(Y_test, scores)
    error = top_class_error(Y_test, scores)
    print(f"{name:12} optimal F {100 * f_measure:.1f} %   error of the most likely topic {100 * error:.1f} %")

# %%
# The exclusive model gives every text a total probability of one, whether it has no topic or three.
# Its probabilities are therefore not comparable between texts.

figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    proba = model.predict_proba(X_test)
    for present, label in ((0, "absent"), (1, "present")):
        values = proba[Y_test == present]
        ax.hist(values, bins=20, range=(0, 1), weights=np.full(len(values), 100 / len(values)), alpha=0.7, label=label)
    ax.set_title(f"{name} classes", loc="left")
    ax.set_xlabel("predicted probability")
    ax.set_ylim(0, 60)
axes[0].set_ylabel("pairs of text and topic, %")
axes[0].legend(title="topic is")
plt.show()

# %%
# ``predict`` returns an indicator again: all topics with a probability of at least one half.

predicted = models["independent"].predict(X_test)
print(predicted[:3])
