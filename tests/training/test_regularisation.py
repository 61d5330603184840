"""Elastic net, intervals of two half-widths, signs and limits: `fit` and its kin, for all five models."""

import numpy as np
import pytest
import reference as ref
from numpy.testing import assert_allclose, assert_array_equal
from problems import MODELS, general_twins, make_data
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import sl1max
from sl1max import MaxentClassifier, MaxentClassifierCV

inf = np.inf
OPTIONS = {
    "elastic net": {"beta": 0.3, "l2": 0.4},
    "elastic net by feature": {"beta": 0.3, "l2": np.linspace(0, 2, 10)},
    "ridge": {"beta": 0, "l2": 0.5},
    "asymmetric": {"beta": 0.3, "beta_upper": 0.1},
    "lower and upper by feature": {"beta_lower": np.linspace(0.1, 1, 10), "beta_upper": np.linspace(1, 0.1, 10)},
    "signs by feature": {"beta_lower": np.where(np.arange(10) % 3 == 0, inf, 0.3),
                         "beta_upper": np.where(np.arange(10) % 3 == 1, inf, 0.3)},
    "limits": {"beta": 0.2, "min_weight": -0.2, "max_weight": np.linspace(0, 1, 10)},
    "all": {"beta": 0.2, "beta_upper": 0.4, "l2": 0.1, "max_weight": 0.5},
    "positive": {"beta": 0.3, "beta_upper": inf},
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize("distribution, label_mode", MODELS)
def test_reaches_the_optimum(distribution, label_mode, beta_rule, options):
    options = OPTIONS[options]
    X, y = make_data(3, values="real" if beta_rule == "deviation" else "binary")
    model = sl1max.fit(
        X, y, distribution=distribution, label_mode=label_mode, beta_rule=beta_rule, tol=1e-10, **options
    )
    twins = general_twins(X, y, distribution, label_mode, beta_rule, options)
    for k, twin in enumerate(twins):
        best = ref.oracle(twin).objective
        zero = np.atleast_1d(model.objective_zero)[k]
        distance = np.atleast_1d(model.objective)[k] - best
        assert abs(distance) <= 1e-8 * abs(zero)
        assert np.atleast_1d(model.dual_gap)[k] >= distance - 1e-12 * abs(zero)
    assert np.all(model.converged)


@pytest.mark.full
def test_500_random_problems():
    """All models, rules and kinds of penalty: 1e-8 of the objective at zero weights, and honest gaps."""
    rng = np.random.default_rng(0)
    n_wrong = []
    for number in range(500):
        distribution, label_mode = MODELS[number % len(MODELS)]
        kind = list(OPTIONS)[number // len(MODELS) % len(OPTIONS)]
        beta_rule = ("deviation", "count")[number % 2]
        size, n_classes = int(rng.integers(20, 150)), int(rng.integers(2, 5))
        X, y = make_data(number, size, n_classes=n_classes, values=("binary", "real")[number // 2 % 2])
        options = {
            name: value * (rng.choice([0.1, 1, 5]) if name in ("beta", "l2") else 1)
            for name, value in OPTIONS[kind].items()
        }
        model = sl1max.fit(
            X, y, distribution=distribution, label_mode=label_mode, beta_rule=beta_rule, tol=1e-9, **options
        )
        for k, twin in enumerate(general_twins(X, y, distribution, label_mode, beta_rule, options)):
            zero = abs(np.atleast_1d(model.objective_zero)[k])
            distance = np.atleast_1d(model.objective)[k] - ref.oracle(twin).objective
            if abs(distance) > 1e-8 * zero or np.atleast_1d(model.dual_gap)[k] < distance - 1e-11 * zero:
                n_wrong.append((number, kind, distribution, label_mode, distance / zero))
    assert not n_wrong


@pytest.mark.parametrize("options", ["elastic net", "asymmetric", "limits", "signs by feature"])
def test_two_exclusive_classes_are_one_vector(options):
    options = OPTIONS[options]
    X, y = make_data(5, n_classes=2)
    model = sl1max.fit(X, y, tol=1e-10, **options)
    (twin,) = general_twins(X, y, "conditional", "exclusive", "deviation", options)
    assert_allclose(model.objective, ref.oracle(twin).objective, rtol=1e-9)
    assert model.weights[[0]].nnz == 0
    coef = model.weights[[1]].toarray()
    assert (coef >= options.get("min_weight", -inf)).all() and (coef <= options.get("max_weight", inf)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_elastic_net_is_scikit_learns(n_classes):
    X, y = make_data(1, n_samples=150, n_classes=n_classes, values="real")
    ours = MaxentClassifier(C=0.5, l1_ratio=0.4, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=0.5, l1_ratio=0.4, solver="saga", max_iter=100_000, tol=1e-10).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert_allclose(ours.intercept_ - ours.intercept_.mean(), theirs.intercept_ - theirs.intercept_.mean(), atol=1e-5)


@pytest.mark.parametrize("distribution, label_mode", MODELS)
def test_scaling_a_feature_changes_nothing(distribution, label_mode):
    X, y = make_data(2, values="real")
    options = {"distribution": distribution, "label_mode": label_mode, "beta": 0.2, "l2": 0.7, "tol": 1e-10}
    scale = np.geomspace(0.01, 100, X.shape[1])
    first, second = sl1max.fit(X, y, **options), sl1max.fit(X * scale, y, **options)
    assert_allclose(second.objective, first.objective, rtol=1e-9)
    assert_allclose((second.weights.toarray() * scale), first.weights.toarray(), atol=1e-4)


@pytest.mark.parametrize("distribution, label_mode", MODELS)
def test_positive(distribution, label_mode):
    X, y = make_data(4)
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, beta=0.2, positive=True, tol=1e-8)
    assert model.weights.nnz and (model.weights.data >= 0).all() and np.all(model.converged)
    if model._parts is not None:
        assert (model._parts[0].data >= 0).all() and (model._parts[1].data <= 0).all()
    assert model.penalty == {"min_weight": 0.0}


@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_c_and_l1_ratio_are_beta_and_l2(form):
    X, y = make_data(4)
    X = sparse.csr_array(X) if form == "sparse" else X
    first = sl1max.fit(X, y, C=2, l1_ratio=0.25)
    second = sl1max.fit(X, y, beta=0.125, l2=0.375, beta_rule="count")
    assert_array_equal(first.weights.toarray(), second.weights.toarray())
    assert first.penalty == second.penalty == {"l2": 0.375}


# --------------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize("options", [{"l1_ratio": 0.3}, {"positive": True}, {"l2": 2.0, "beta_upper": 3.0}])
@pytest.mark.parametrize("distribution, label_mode", MODELS)
def test_zero_beta_is_the_least(distribution, label_mode, options):
    X, y = make_data(6)
    options = options | {"distribution": distribution, "label_mode": label_mode}
    beta = sl1max.zero_beta(X, y, **options)
    path = sl1max.path(X, y, [1.001 * beta, 0.98 * beta], tol=1e-8, **options)
    assert path.n_nonzero[0] == 0 < path.n_nonzero[1]


def test_path_keeps_the_ratio():
    X, y = make_data(7)
    path = sl1max.path(X, y, 4, l1_ratio=0.25, beta_rule="count", tol=1e-10)
    for strength, model in zip(path.betas, path.models, strict=True):
        alone = sl1max.fit(X, y, C=1 / strength, l1_ratio=0.25, tol=1e-10)
        assert_allclose(model.objective, alone.objective, rtol=1e-9)
        assert model.beta == pytest.approx(0.25 * strength) and model.penalty["l2"] == pytest.approx(0.75 * strength)


def test_path_of_ridge_starts_at_a_thousandth():
    X, y = make_data(7)
    first, lasso = (sl1max.path(X, y, 3, l1_ratio=ratio).betas[0] for ratio in (0, 1))
    assert first == pytest.approx(1000 * lasso)


def test_cross_validation_chooses_the_ratio():
    X, y = make_data(8, n_samples=120)
    search = MaxentClassifierCV(betas=4, l1_ratio=[0.2, 1.0], cv=3, scoring="neg_log_loss").fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_params_["l1_ratio"] in (0.2, 1.0)
    assert set(search.cv_results_["param_l1_ratio"]) == {0.2, 1.0}


# ------------------------------------------------------------------------------------------------ elsewhere


def test_incremental_training():
    X, y = make_data(9)
    options = {"beta": 0.3, "l2": 0.2, "max_weight": 0.6}
    solver = sl1max.Solver(sl1max.Problem(X, y, **options), tol=1e-10)
    assert solver.step(200) == "converged"
    assert_allclose(solver.objective, sl1max.fit(X, y, tol=1e-10, **options).objective, rtol=1e-9)
    solver.set_beta(0.1)
    assert solver.step(200) == "converged"
    expected = sl1max.fit(X, y, tol=1e-10, **options | {"beta": 0.1})
    assert_allclose(solver.objective, expected.objective, rtol=1e-9)
    assert solver.result().penalty == expected.penalty


def test_a_model_remembers_its_penalty(tmp_path):
    X, y = make_data(9)
    model = sl1max.fit(X, y, beta=0.3, l2=np.full(10, 0.1), positive=True)
    assert model.penalty == {"l2": None, "min_weight": 0.0}
    model.save(tmp_path / "model.sl1max")
    assert sl1max.load(tmp_path / "model.sl1max").penalty == model.penalty
    assert sl1max.fit(X, y).penalty is None


def test_a_checkpoint_belongs_to_its_penalty(tmp_path):
    X, y = make_data(9)
    path = tmp_path / "fit.ckpt"
    sl1max.fit(X, y, label_mode="independent", l2=0.5, checkpoint=path)
    with pytest.raises(sl1max.CheckpointError, match="l2"):
        sl1max.fit(X, y, label_mode="independent", l2=0.6, checkpoint=path)


def test_constraints_have_two_widths():
    X, y = make_data(9)
    model = sl1max.fit(X, y, beta=0.3, beta_upper=0.1, tol=1e-10, distribution="joint")
    table = sl1max.constraints(model, X, y, features=list(range(10)))
    assert_allclose(table["target"] - table["lower"], 3 * (table["upper"] - table["target"]), rtol=1e-9)
    weight, slack = table["weight"], 1e-6
    assert (table["expectation"] >= table["lower"] - slack).all()
    assert (table["expectation"] <= table["upper"] + slack).all()
    assert_allclose(table["expectation"][weight > 1e-6], table["lower"][weight > 1e-6], atol=1e-6)
    assert_allclose(table["expectation"][weight < -1e-6], table["upper"][weight < -1e-6], atol=1e-6)


def test_constraints_of_signs_are_open():
    X, y = make_data(9)
    model = sl1max.fit(X, y, beta=0.3, positive=True, label_mode="independent", tol=1e-10)
    table = sl1max.constraints(model, X, y, features=list(range(10)))
    assert set(table["side"]) == {"class"}
    assert np.isinf(table["upper"]).all() and np.isfinite(table["lower"]).any()


@pytest.mark.parametrize("label_mode, n_classes", [("independent", 3), ("exclusive", 2)])
def test_sequential_solver_refuses_what_is_not_identified(label_mode, n_classes):
    X, y = make_data(9, n_classes=n_classes)
    with pytest.raises(ValueError, match="would apply to their difference"):
        sl1max.fit(X, y, solver="sequential", label_mode=label_mode, l2=1.0)
    with pytest.raises(ValueError, match="would apply to their difference"):
        sl1max.Solver(sl1max.Problem(X, y, label_mode=label_mode, positive=True), solver="sequential")


@pytest.mark.parametrize("distribution, label_mode", [("joint", "exclusive"), ("joint", "independent")])
def test_sequential_solver_of_the_joint_models(distribution, label_mode):
    X, y = make_data(9)
    options = {"distribution": distribution, "label_mode": label_mode, "beta": 0.5, "l2": 0.5}
    slow = sl1max.fit(X, y, solver="sequential", tol=1e-4, **options)
    assert np.all(slow.converged)
    assert_allclose(slow.objective, sl1max.fit(X, y, tol=1e-10, **options).objective, rtol=1e-3)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"l1_ratio": 0.5}, "give C with it"),
        ({"l1_ratio": 2}, "l1_ratio=2 must be a number from 0 to 1"),
        ({"C": 1, "l1_ratio": 0.5, "l2": 1}, "l1_ratio and l2 are two ways"),
        ({"l2": -1}, "l2 must not be negative"),
        ({"l2": inf}, "l2 must be finite"),
        ({"l2": np.ones(3)}, "l2 has shape"),
        ({"beta_upper": -1}, "beta_upper must not be negative"),
        ({"beta_lower": [np.nan] * 10}, "beta_lower has NaN"),
        ({"min_weight": 1}, "min_weight must be at most 0"),
        ({"max_weight": -1}, "max_weight must be at least 0"),
        ({"max_weight": np.nan}, "max_weight must be at least 0"),
        ({"positive": 1}, "positive=1 must be True or False"),
    ],
)
def test_messages(options, message):
    X, y = make_data(9)
    with pytest.raises(ValueError, match=message):
        sl1max.fit(X, y, **options)
