"""Quadratic model of the objective of all exclusive classes, in the nonzero weights and the violators.

The Hessian couples all classes through the examples, H_(cj)(dk) = sum_i u_i x_ij x_ik q_ic (1[c = d] - q_id), and there
are as many q_ic as classes x examples. Few pairs (i, c) have a large q_ic. The others are sampled; each sampled pair
represents pairs whose total q equals the smallest large one. With the other pairs approximated by independent features
instead, the largest violation on 1/32 of SuperTags stayed above 0.07 beta for six steps.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from sl1max._core._coupled import Descent, places_of

SWEEPS_A_RUN = 16  # sweeps of coordinate descent between two checks of convergence
MAX_RUNS = 5
INNER_SWEEPS = 2  # sweeps over a class before the next one
SEEN = 0.5  # minimum share of a model mean in the pairs; with less, the sample is not representative of the feature
RADIUS = 2.0  # longest step of a weight; the curvature of a feature that is rare under q is not reliable


class Quadratic:
    """Quadratic model of the objective.

    Parameters
    ----------
    columns : Columns
        Columns with an index of rows.
    mass : ndarray of shape (n_samples,)
        u_i
    prices : sequence of Price
        For each class: working set with weights, beta, gradient and mean; share and missing share.
    cells : sequence of tuples (rows, prob)
        For each class, from `sample_cells`.
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
        """Positions of the features in the pairs of a class, and a diagonal for the other pairs."""
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
        """Find a step that reduces the violation, relative to beta, to about this value; False if interrupted."""
        for _ in range(MAX_RUNS):
            if stop is not None and stop[0]:
                return False
            if self._descent.run(SWEEPS_A_RUN, INNER_SWEEPS, goal) <= goal:
                break
        return True

    def moved(self, length):
        """Weights (cols, values) of each class after this part of the step, and the change of the intercepts."""
        step = length * self._descent.step
        new = self._weights + step
        weights = []
        for work, start in zip(self._work, self._start[:-1], strict=True):
            values = new[start : start + len(work)]
            held = np.flatnonzero(values)
            weights.append((work[held], values[held]))
        return weights, step[self._start[1:] - 1]

    def balance(self, missing, share):
        """Step in the intercepts that corrects the shares of the classes."""
        from scipy.sparse.linalg import LinearOperator, cg  # imported here, since it would add 80 ms to `import sl1max`

        shape = len(share), len(share)

        def product(v):
            return share * v - self._probs.T @ (self._mass * (self._probs @ v))

        hessian = LinearOperator(shape, matvec=product, dtype=float)
        inverse_diagonal = LinearOperator(shape, matvec=lambda v: v / share, dtype=float)
        return cg(hessian, missing, rtol=1e-3, maxiter=100, M=inverse_diagonal)[0]


def cumulate(sizes):
    """Offsets of parts of these sizes, and the end of the last."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
