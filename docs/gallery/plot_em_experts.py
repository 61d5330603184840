"""
A mixture of experts by EM
==========================

In a linear model a word has the same meaning on all pages. In a mixture of experts it may have
opposite meanings: a *gate* selects the expert for an example, and each *expert* is a maximum-entropy
model. EM trains all of them. Its M-steps fit the same examples repeatedly with other
weights, which is the purpose of :class:`sl1max.Solver`.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.vq import kmeans2

import sl1max

# %%
# Synthetic data
# --------------
#
# Each text comes from one of two sources, which differ in the frequencies of twenty words. Ten other
# words indicate the label, with opposite meanings in the two sources. The source is not observed.


def make_texts(rng, n_texts):
    source = rng.integers(0, 2, n_texts)
    label = rng.integers(0, 2, n_texts)
    of_source = rng.random((n_texts, 20)) < np.where(np.arange(20) % 2 == source[:, None], 0.4, 0.1)
    agrees = np.arange(10) % 2 == (label ^ source)[:, None]
    of_label = rng.random((n_texts, 10)) < np.where(agrees, 0.4, 0.1)
    return np.hstack([of_source, of_label]).astype(float), label


rng = np.random.default_rng(0)
X, y = make_texts(rng, 2000)
X_test, y_test = make_texts(rng, 2000)

plain = sl1max.fit(X, y)
print(f"one model: {np.mean(plain.predict(X_test) == y_test):.3f} of the test texts are classified correctly")

# %%
# EM
# --
#
# The E-step computes the share of each expert in each example: the probability from the gate times the
# probability that the expert gives the label. The M-step uses these shares as sample weights of the
# experts and as soft labels of the gate, and takes a few steps. Each solver keeps its
# weights from one M-step to the next, and the experts share the columns of one problem.
#
# EM finds a local maximum, and it cannot leave the saddle point where all experts are equal. The
# shares are therefore initialised from a clustering of the texts: 0.6 for the expert of the cluster, 0.4 for the other.

N_EXPERTS, N_ROUNDS = 2, 20

cluster = kmeans2(X, N_EXPERTS, seed=0, minit="++")[1]
share = np.where(np.arange(N_EXPERTS) == cluster[:, None], 0.6, 0.4)
problem = sl1max.Problem(X, y, beta=0.5)
experts = [sl1max.Solver(problem) for _ in range(N_EXPERTS)]
gate = sl1max.Solver(sl1max.Problem(X, share, label_mode="exclusive", beta=0.5))

history = []
for _ in range(N_ROUNDS):
    # M-step
    gate.set_target(share)
    gate.step(2)
    for expert, weight in zip(experts, share.T, strict=True):
        expert.reweight(weight)
        expert.step(2)
    # E-step
    of_label = [expert.result().predict_proba(X)[np.arange(len(y)), y] for expert in experts]
    joint = gate.result().predict_proba(X) * np.column_stack(of_label)
    share = joint / joint.sum(axis=1, keepdims=True)
    history.append(np.log(joint.sum(axis=1)).mean())


def mixture_proba(X):
    of_expert = gate.result().predict_proba(X)
    return sum(of_expert[:, [k]] * expert.result().predict_proba(X) for k, expert in enumerate(experts))


right = np.mean(mixture_proba(X_test).argmax(axis=1) == y_test)
print(f"two experts and a gate: {right:.3f} of the test texts are classified correctly")

# %%
# The log-likelihood of the labels, which EM increases, and that of the single model:

plt.plot(np.arange(1, N_ROUNDS + 1), history, label="mixture")
plt.axhline(
    np.log(plain.predict_proba(X)[np.arange(len(y)), y]).mean(), linestyle="--", color="0.5", label="single model"
)
plt.xlabel("round of EM")
plt.ylabel("mean log-likelihood, nats")
plt.legend()
plt.show()

# %%
# Weights of the experts
# ----------------------
#
# The ten words that indicate the label have weights of alternating sign, and opposite signs in the two
# experts, as in the data.

for k, expert in enumerate(experts):
    print(f"expert {k}:", *(f"{weight:+.1f}" for weight in expert.weights(1)[20:]))

# %%
# Solvers that keep their weights need few rounds. The total of all M-steps:

print(f"gate {gate.n_iter}, experts {experts[0].n_iter} and {experts[1].n_iter} rounds for {N_ROUNDS} M-steps")
