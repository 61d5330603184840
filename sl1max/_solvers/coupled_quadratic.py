"""The objective of all exclusive classes to second order, on the weights of each and what is to join them.

The Hessian couples all classes through the examples, H_(cj)(dk) = sum_i u_i x_ij x_ik q_ic (1[c = d] - q_id), and there
are as many q_ic as classes x examples. The cells (i, c) with a notable one are few. Of the others there is a sample, in
which a cell stands for as many as have the least notable q together. Taken as if features were independent of each
other, they kept the worst violation of a thirty-second of SuperTags above 0.07 of beta for six steps.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from sl1max._core._coupled import Descent, places_of

SWEEPS_A_RUN = 16  # of coordinate descent, between two looks at whether to go on
MAX_RUNS = 5
INNER_SWEEPS = 2  # over a class while it is at hand
SEEN = 0.5  # of a model mean, by the cells: with less the sample says little of the feature
RADIUS = 2.0  # the longest step of a weight: where a feature is rare under q, the curvature says little


class Quadratic:
    """The objective to second order.

    Parameters
    ----------
    columns : Columns
        With an index of rows.
    mass : ndarray of shape (n_samples,)
        u_i
    prices : sequence of Price
        Of each class: work, weights, beta, gradient and mean of what has a weight or may get one, share and missing.
    cells : sequence of tuples (rows, prob)
        Of each class, as `sample_cells` makes them.
    intercept : bool
    """

    def __init__(self, columns, mass, prices, cells, intercept):
        self._mass = mass
        self._work = [price.work for price in prices]
        self._start = cumulate([len(work) + 1 for work in self._work])
        edges = cumulate([len(rows) for rows, _ in cells])
        rows, prob = (np.concatenate(parts) for parts in zip(*cells, strict=True))
        prob /= np.maximum(np.bincount(rows, prob, minlength=len(mass)), 1.0)[rows]  # a sample may exceed one
        self._probs = sparse.csc_array((prob, rows, edges), shape=(len(mass), len(prices)))
        flow = mass[rows] * prob
        held = [slice(*ends) for ends in itertools.pairwise(edges)]
        parts = [self._of_class(columns, price, rows[k], flow[k]) for price, k in zip(prices, held, strict=True)]
        sizes, places, values, rest = zip(*parts, strict=True)

        def join(last, name):
            return np.concatenate([np.append(getattr(price, name), last(price)) for price in prices])

        self._weights = join(lambda price: 0.0, "weights")
        self._descent = Descent(
            self._start, edges, cumulate(np.concatenate(sizes)), np.concatenate(places),
            None if columns.binary else np.concatenate(values), rows, prob, mass,
            join(lambda price: -price.missing, "gradient"), self._weights,
            join(lambda price: 0.0 if intercept else np.inf, "beta"), np.concatenate(rest), RADIUS,
        )  # fmt: skip

    @staticmethod
    def _of_class(columns, price, rows, flow):
        """Where the features are among the cells of a class, and a diagonal for what these leave out."""
        indptr, places, values = places_of(columns, price.work, rows)
        sizes = np.diff(indptr)
        tail = max(price.share - flow.sum(), 0.0)
        if values is None:
            seen = np.bincount(np.repeat(np.arange(len(sizes)), sizes), flow[places], minlength=len(sizes))
            rest = np.where(seen < SEEN * price.mean, price.mean - seen, 0.0)
        else:
            rest = tail * columns.rms[price.work] ** 2
        return np.append(sizes, 0), places, values, np.append(rest, tail)

    def solve(self, goal, stop=None):
        """Find a step that leaves about so much of a violation, over beta; False if that was interrupted."""
        for _ in range(MAX_RUNS):
            if stop is not None and stop[0]:
                return False
            if self._descent.run(SWEEPS_A_RUN, INNER_SWEEPS, goal) <= goal:
                break
        return True

    def moved(self, length):
        """Weights (cols, values) of each class after this part of the step, and what it adds to the intercepts."""
        step = length * self._descent.step
        new = self._weights + step
        weights = []
        for work, start in zip(self._work, self._start[:-1], strict=True):
            values = new[start : start + len(work)]
            held = np.flatnonzero(values)
            weights.append((work[held], values[held]))
        return weights, step[self._start[1:] - 1]

    def balance(self, missing, share):
        """The step on the intercepts alone that gives the classes what they miss of their shares."""
        from scipy.sparse.linalg import LinearOperator, cg  # 80 ms that `import sl1max` need not take

        shape = len(share), len(share)

        def product(v):
            return share * v - self._probs.T @ (self._mass * (self._probs @ v))

        hessian = LinearOperator(shape, matvec=product, dtype=float)
        inverse_diagonal = LinearOperator(shape, matvec=lambda v: v / share, dtype=float)
        return cg(hessian, missing, rtol=1e-3, maxiter=100, M=inverse_diagonal)[0]


def cumulate(sizes):
    """Where parts of these sizes begin, and the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
