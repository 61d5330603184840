"""Many exclusive classes in the space of the rows: the arrays of `ManyClassesSolver`, class by class."""

from __future__ import annotations

import numpy as np

from sl1max._core._many_classes import ManyClassesSolver


def join_lists(parts, dtypes):
    """Where each class begins, and the lists of all classes one after the other."""
    parts = list(parts)
    start = np.concatenate([[0], np.cumsum([len(first) for first, *_ in parts])]).astype(np.int64)
    return start, *(
        np.concatenate([*lists, np.empty(0)]).astype(dtype)
        for lists, dtype in zip(zip(*parts, strict=True), dtypes, strict=True)
    )


def make_row_space_solver(columns, mass, n_classes, *, examples, features, emp_mean, beta, common_beta, **options):
    """A solver.

    Parameters
    ----------
    columns : Columns
    mass : ndarray of shape (n_samples,)
        u_i, summing to one.
    n_classes : int
    examples : callable
        The examples of a class, and its share of each.
    features : callable
        The features that a class has, ascending; None: all of them.
    emp_mean, beta : callable
        Empirical means and penalties of all features of a class, arrays (n_features,).
    common_beta : ndarray of shape (n_features,)
        Penalties of most classes; those of a class that differ are kept apart.
    **options
        The other parameters of `ManyClassesSolver`.

    Returns
    -------
    ManyClassesSolver
    """

    def own(c):
        mean, penalty, held = emp_mean(c), beta(c), features(c)
        differs = penalty != common_beta
        if held is None:
            differs[:] = True
        else:
            differs[held] = True
        cols = np.flatnonzero(differs)
        return cols, mean[cols], penalty[cols]

    return ManyClassesSolver(
        columns, mass, join_lists((examples(c) for c in range(n_classes)), (np.int32, float)),
        join_lists((own(c) for c in range(n_classes)), (np.int32, float, float)), common_beta, **options,
    )  # fmt: skip
