"""
A mixture of experts by EM
==========================

A linear model cannot say "these words mean one thing on some pages and the opposite on others".
A mixture of two can: a *gate* says which expert answers for an example, and each *expert* is a
maximum-entropy model of its own. EM trains all three at once, and its M-steps are what
:class:`sl1max.Solver` is made for: the same examples again and again, with other weights.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.vq import kmeans2

import sl1max

# %%
# Made data
# ---------
#
# Twenty words tell which of two worlds a text is from, by their frequencies. Ten others go with
# the label, in one world with the first, in the other with the second. No text says which world
# it is from: the experts have to find out.


def make_texts(rng, n_texts):
    world = rng.integers(0, 2, n_texts)
    label = rng.integers(0, 2, n_texts)
    of_world = rng.random((n_texts, 20)) < np.where(np.arange(20) % 2 == world[:, None], 0.4, 0.1)
    agrees = np.arange(10) % 2 == (label ^ world)[:, None]
    of_label = rng.random((n_texts, 10)) < np.where(agrees, 0.4, 0.1)
    return np.hstack([of_world, of_label]).astype(float), label


rng = np.random.default_rng(0)
X, y = make_texts(rng, 2000)
X_test, y_test = make_texts(rng, 2000)

plain = sl1max.fit(X, y)
print(f"one model: {np.mean(plain.predict(X_test) == y_test):.3f} of the test texts right")

# %%
# EM
# --
#
# The E-step asks how far each expert answers for each example: the gate's opinion times the
# probability that the expert gives the label. The M-step gives these shares to the experts as
# sample weights and to the gate as soft labels, and takes a few steps. Every solver keeps its
# weights from one M-step to the next, and the two experts share the columns of one problem.
#
# EM climbs to the nearest summit, and where all experts are alike it stands on a saddle: the
# shares start from a clustering of the texts into two, believed to three fifths.

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
print(f"two experts and a gate: {right:.3f} of the test texts right")

# %%
# The log-likelihood of the labels, which EM is to raise, and that of the one model.

plt.plot(np.arange(1, N_ROUNDS + 1), history, label="mixture")
plt.axhline(np.log(plain.predict_proba(X)[np.arange(len(y)), y]).mean(), linestyle="--", color="0.5", label="one model")
plt.xlabel("round of EM")
plt.ylabel("mean log-likelihood, nats")
plt.legend()
plt.show()

# %%
# What the experts found
# ----------------------
#
# Weights of the ten words that go with the label, even ones and odd ones in turn: the experts
# have learnt the opposite of each other, as the data were made.

for k, expert in enumerate(experts):
    print(f"expert {k}:", *(f"{weight:+.1f}" for weight in expert.weights(1)[20:]))

# %%
# A solver that goes on from its weights has little left to do: the rounds of all M-steps.

print(f"gate {gate.n_iter}, experts {experts[0].n_iter} and {experts[1].n_iter} rounds for {N_ROUNDS} M-steps")
