"""The rules for beta_cj against numbers worked out by hand, and against the reference."""

import itertools

import numpy as np
import pytest
import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sl1max
from sl1max._data.inputs import Strengths, read_beta, read_data
from sl1max._data.moments import IN_CLASS, NON_CLASS, Moments
from sl1max._data.penalties import Penalties
from sl1max.chunks import store_columns

# Eight examples; class 1 has the last two. Columns: seen in 2 of 8 (both in class 0), in all of class 1 and
# one of class 0, in everything, nowhere.
X = np.array(
    [
        [1, 1, 1, 0],
        [1, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 1, 1, 0],
        [0, 1, 1, 0],
    ]
)
Y = np.array([0, 0, 0, 0, 0, 0, 1, 1])
STORAGES = np.asarray, sparse.csr_array


def make_penalties(
    X, y, distribution, beta=1.0, beta_rule="deviation", label_mode="auto", sample_weight=None, **options
):
    settings = {"multilabel_weighting": "duplicate", "solver": "auto", "offset": None} | options
    data = read_data(X, y, distribution=distribution, label_mode=label_mode, sample_weight=sample_weight, **settings)
    beta = read_beta(beta, len(data.classes), data.matrix.shape[1])
    return Penalties(data, Moments(data), distribution, Strengths(beta, beta_rule))


@pytest.mark.parametrize("distribution", ["conditional", "joint"])
def test_deviation_over_all_cells(distribution):
    """f_cj has the variance p (1 - p), p the share of examples that have both class and feature; m = 8."""
    penalties = make_penalties(X, Y, distribution, beta=0.5)
    once = 1 / 8
    for c, shares in ((0, [2 / 8, 1 / 8, 6 / 8]), (1, [once, 2 / 8, 2 / 8])):
        expected = [0.5 * np.sqrt(p * (1 - p)) / np.sqrt(8) for p in shares]
        np.testing.assert_allclose(penalties.block(c, IN_CLASS), [*expected, np.inf], rtol=1e-14)


def test_deviation_within_the_class():
    """Class 0: m = 6; class 1: m = 2, where every floor is half the range."""
    penalties = make_penalties(X, Y, "class-conditional", beta=0.5)
    sigma = np.sqrt([2 / 6 * 4 / 6, 1 / 6 * 5 / 6])
    np.testing.assert_allclose(penalties.block(0, IN_CLASS), [*(0.5 * sigma / np.sqrt(6)), np.inf, np.inf])
    np.testing.assert_allclose(penalties.block(1, IN_CLASS), [0.25 / np.sqrt(2), 0.25 / np.sqrt(2), np.inf, np.inf])


def test_non_class():
    penalties = make_penalties(X, Y, "joint", label_mode="independent")
    other = make_penalties(X, Y, "joint")
    np.testing.assert_allclose(penalties.block(1, NON_CLASS), other.block(0, IN_CLASS))
    np.testing.assert_allclose(penalties.block(0, NON_CLASS), other.block(1, IN_CLASS))


def test_class_of_one_example():
    """m = 1: half the range, whatever the value."""
    penalties = make_penalties(3.0 * X, np.arange(8) == 7, "class-conditional", beta=2)
    np.testing.assert_allclose(penalties.block(1, IN_CLASS), [3, 3, np.inf, np.inf])


@pytest.mark.parametrize("weight", [1 - 1e-9, 1 + 1e-9, 1.5])
def test_class_of_about_one_example(weight):
    penalties = make_penalties(X, np.arange(8) == 7, "class-conditional", sample_weight=np.full(8, weight))
    np.testing.assert_allclose(penalties.block(1, IN_CLASS)[:2], 0.5 / np.sqrt(weight))


def test_count():
    np.testing.assert_allclose(make_penalties(X, Y, "joint", 4, "count").block(0, IN_CLASS)[:3], 4 / 8)
    np.testing.assert_allclose(make_penalties(X, Y, "conditional", 4, "count").block(1, IN_CLASS)[:3], 4 / 8)
    for c, size in ((0, 6), (1, 2)):
        expected = [4 / size, 4 / size, np.inf, np.inf]
        block = make_penalties(X, Y, "class-conditional", 4, "count").block(c, IN_CLASS)
        np.testing.assert_allclose(block, expected)


@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
def test_weight_two_is_the_row_twice(distribution, beta_rule):
    weight = np.array([1, 2, 1, 1, 3, 1, 2, 1])
    weighted = make_penalties(X, Y, distribution, 1, beta_rule, sample_weight=weight)
    repeated = make_penalties(np.repeat(X, weight, axis=0), np.repeat(Y, weight), distribution, 1, beta_rule)
    for c in range(2):
        np.testing.assert_allclose(weighted.block(c, IN_CLASS), repeated.block(c, IN_CLASS), rtol=1e-13)


@pytest.mark.parametrize("distribution", ["conditional", "joint", "class-conditional"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_real_values_against_the_reference(distribution, storage):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 8)) * (rng.random((60, 8)) < 0.5) * 10.0 ** np.arange(-4, 4)
    y = rng.integers(0, 3, 60)
    weight = rng.uniform(0.5, 4, 60)
    penalties = make_penalties(storage(X), y, distribution, 0.7, sample_weight=weight)
    labels = np.eye(3)[y]
    for c in range(3):
        if distribution == "class-conditional":
            expected = ref.class_conditional(X, labels, weight, c, beta=0.7).beta[0]
        else:
            expected = getattr(ref, distribution)(X, labels, weight, beta=0.7).beta[c]
        np.testing.assert_allclose(penalties.block(c, IN_CLASS), expected, rtol=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_within_the_class_a_shift_changes_nothing(storage):
    """A column far from zero keeps its deviation to the last digits."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 8, (50, 4)) / 8, rng.integers(0, 2, 50)
    near, far = (make_penalties(storage(X + shift), y, "class-conditional") for shift in (1, 2.0**40))
    for c in range(2):
        np.testing.assert_allclose(far.block(c, IN_CLASS), near.block(c, IN_CLASS), rtol=1e-13)


def test_sums_do_not_depend_on_the_pieces(monkeypatch):
    rng = np.random.default_rng(4)
    X, y = sparse.random(30, 20, density=0.3, random_state=4), rng.integers(0, 3, 30)
    whole = make_penalties(X, y, "joint")
    for size in (1, 7, 50):
        monkeypatch.setattr("sl1max._data.moments.CHUNK", size)
        pieces = make_penalties(X, y, "joint")
        for c in range(3):
            np.testing.assert_array_equal(pieces.block(c, IN_CLASS), whole.block(c, IN_CLASS))


def test_arrays():
    per_feature = np.array([0.0, 1.0, np.inf, 3.0])
    plain = make_penalties(X, Y, "conditional").block(0, IN_CLASS)
    block = make_penalties(X, Y, "conditional", per_feature).block(0, IN_CLASS)
    np.testing.assert_allclose(block, [0, plain[1], np.inf, np.inf])
    per_class = np.stack([per_feature, 2 * np.ones(4)])
    penalties = make_penalties(X, Y, "conditional", per_class)
    np.testing.assert_allclose(penalties.block(0, IN_CLASS), block)
    np.testing.assert_allclose(penalties.block(1, IN_CLASS), 2 * make_penalties(X, Y, "conditional").block(1, IN_CLASS))
    same = make_penalties(X, Y, "conditional", np.ones(4)).block(0, IN_CLASS)
    np.testing.assert_array_equal(same, plain)


def test_beta_of_zero_and_infinity():
    assert make_penalties(X, Y, "joint", 0.0).block(0, IN_CLASS).tolist() == [0, 0, 0, np.inf]
    assert np.isinf(make_penalties(X, Y, "joint", np.inf).block(0, IN_CLASS)).all()


def test_left_out_and_unpenalised_features_in_a_model():
    rng = np.random.default_rng(3)
    X = (rng.random((100, 6)) < 0.4).astype(float)
    y = (X[:, 0] + X[:, 1] + rng.random(100) > 1.2).astype(int)
    beta = np.array([np.inf, 0, 1, 1, 1, 1])
    for distribution in ("conditional", "joint", "class-conditional"):
        model = sl1max.fit(X, y, distribution=distribution, beta=beta, tol=1e-9)
        assert not model.weights[:, [0]].toarray().any()
        assert model.weights[:, [1]].toarray().any()
        assert np.all(model.converged)


@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize("distribution", ["conditional", "class-conditional"])
def test_some_columns(distribution, beta_rule):
    """Those of some columns are those of all; of sparse columns, whatever the class lacks, those of dense ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.15)
    X[:, 0] = rng.normal(size=40)
    y = rng.integers(0, 3, 40)
    cols = np.array([0, 5, 11])
    for beta in (0.5, np.linspace(0, 1, 12), rng.random((3, 12))):
        options = {"beta": beta, "beta_rule": beta_rule, "label_mode": "independent"}
        penalties = make_penalties(X, y, distribution, **options)
        for block in itertools.product(range(3), (IN_CLASS, NON_CLASS)):
            whole = penalties.block(*block)
            np.testing.assert_array_equal(penalties.block(*block, cols), whole[cols])
            np.testing.assert_array_equal(penalties._at("beta", *block, penalties._mass_of(*block), None), whole)


MODELS = [
    ("conditional", "exclusive"),
    ("conditional", "independent"),
    ("class-conditional", "exclusive"),
    ("joint", "exclusive"),
    ("joint", "independent"),
]
CANCELLED = np.array([[1, 1], [-1, 0], [1, 1], [-1, 1], [0, 0], [0, 0], [1, 1], [-1, 0]], float)


def read_stored(X, folder):
    """The same matrix dense, by rows, by columns, and in files."""
    pieces = np.array_split(X, 3)
    return {
        "dense": np.asfortranarray(X),
        "csr": sparse.csr_array(X),
        "csc": sparse.csc_array(X),
        "files": store_columns(pieces, folder, n_features=X.shape[1]),
    }


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_sparse_penalties_equal_dense_ones_where_values_of_a_class_cancel(distribution, label_mode):
    """Column 0 is +1 and -1 twice in class 0; its penalty is not that of a feature that the class lacks."""
    dense, stored = (make_penalties(kind(CANCELLED), Y, distribution, label_mode=label_mode) for kind in STORAGES)
    for block in itertools.product(range(2), (IN_CLASS, NON_CLASS)):
        np.testing.assert_allclose(stored.block(*block), dense.block(*block), rtol=1e-14)


@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1.0, 2.0**-300, 2.0**300]))
@settings(max_examples=10, deadline=None)
def test_penalties_do_not_depend_on_the_storage(distribution, label_mode, beta_rule, seed, scale, tmp_path_factory):
    """Of signed lattice values, which cancel often; with weights, zero weights, shared labels and scaled columns."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (24, 9)) * (rng.random((24, 9)) < rng.uniform(0.3, 1)) * scale
    X[:, 0] = np.abs(X[:, 0])
    labels = rng.random((24, 3)) < 0.5
    labels[:3] |= np.eye(3, dtype=bool)
    labels[3:6] &= ~np.eye(3, dtype=bool)
    weight = rng.integers(0, 3, 24) + 0.0
    weight[:6] = 1
    options = {
        "beta_rule": beta_rule,
        "label_mode": label_mode,
        "sample_weight": weight,
        "keep_all": bool(rng.integers(2)),
    }
    matrices = read_stored(X, tmp_path_factory.mktemp("columns"))
    found = {name: make_penalties(matrix, labels, distribution, **options) for name, matrix in matrices.items()}
    for block in itertools.product(range(3), (IN_CLASS, NON_CLASS)):
        expected = found["dense"].block(*block)
        for name in ("csr", "csc", "files"):
            np.testing.assert_allclose(found[name].block(*block), expected, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_fit_does_not_depend_on_the_storage_of_signed_values(distribution, label_mode, beta_rule, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (60, 12)) + 0.0
    X[:20, 0] = np.repeat([1, -1], 10)
    y = np.repeat([0, 1, 2], 20)
    models = {
        name: sl1max.fit(
            X, y, distribution=distribution, label_mode=label_mode, beta_rule=beta_rule, beta=0.4, tol=1e-9
        )
        for name, X in read_stored(X, tmp_path).items()
    }
    for name, model in models.items():
        assert np.all(model.converged)
        np.testing.assert_allclose(model.objective, models["dense"].objective, rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(model.predict_proba(X), models["dense"].predict_proba(X), atol=1e-4, err_msg=name)
