"""Density estimation with implicit features: optimality, the certificate over all features, warm starts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from species_data import SPECIES, jar_gain, load_species, make_species, needs_shared

import sl1max
from sl1max import ConvergenceWarning
from sl1max._data.binned import BinnedPoints, FeatureColumns
from sl1max._data.feature_table import choose_classes, default_betas, expand, means_and_penalties
from sl1max._data.penalties import BlockPenalties
from sl1max.training import _density
from sl1max.training._density import MatrixColumns, choose_violators, fit_density, plain_penalties


def make_problem(seed=0, kind="counts", classes="lqpht", n_presences=20, n_background=80):
    """(source, means, penalties, presence, q0) and the columns of all features."""
    background, presences = make_species(seed, kind=kind, n_presences=n_presences, n_background=n_background)
    problem, table = problem_of(background, presences, [3], classes)
    return problem, table.columns(np.concatenate([background, presences]))


def problem_of(background, presences, categorical, classes):
    points = BinnedPoints(np.concatenate([background, presences]))
    table = expand(points.points, presences, classes, categorical, points.values)
    means, penalties = means_and_penalties(table, presences, default_betas(len(presences), classes))
    presence = np.zeros(len(points))
    presence[len(background) :] = 1 / len(presences)
    q0 = np.full(len(points), 1 / len(points))
    return (FeatureColumns(table, points), means, penalties, presence, q0), table


def evaluate(columns, means, penalties, q0, fit):
    """Objective and model at the weights of a fit, from all columns."""
    lam = np.zeros(len(means))
    lam[fit.used] = fit.weights
    scores = columns @ lam
    mass = q0 * np.exp(scores - scores.max())
    log_z = scores.max() + np.log(mass.sum())
    return log_z - lam @ means + np.abs(lam) @ penalties, mass / mass.sum(), lam


# ------------------------------------------------------------------------------------------ implicit columns


@pytest.mark.parametrize("kind", ["counts", "decimals"])
def test_means_of_implicit_columns_equal_those_of_columns(kind):
    (source, *_), columns = make_problem(kind=kind)
    for seed in range(3):
        mass = np.random.default_rng(seed).dirichlet(np.full(len(columns), 0.3))
        assert_allclose(source.means(mass), mass @ columns, rtol=1e-12, atol=1e-15)


def test_implicit_columns_are_made_on_demand():
    (source, *_), columns = make_problem()
    which = np.array([5, 0, 40, len(columns[0]) - 1])
    made = np.empty((4, len(columns)))
    source.fill(which, made)
    assert_array_equal(made, columns[:, which].T)


def test_means_of_hinges_keep_their_digits_far_from_zero():
    rng = np.random.default_rng(0)
    v = 1e5 + rng.random((500, 1))
    points = BinnedPoints(v)
    table = expand(points.points, v[:20], "h", [], points.values)
    hinges = table[table.high > table.low]
    mass = rng.dirichlet(np.ones(500))
    expected = [np.sum(mass * column) for column in hinges.columns(v).T]
    assert_allclose(FeatureColumns(hinges, points).means(mass), expected, rtol=1e-11)


def test_category_outside_the_points_has_mean_zero():
    points = BinnedPoints(np.array([[1.0], [2.0]]))
    table = expand(points.points, np.array([[2.0], [3.0]]), "l", [0], points.values)
    assert_array_equal(FeatureColumns(table, points).means(np.array([0.25, 0.75])), [0.75, 0])


# -------------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("kind", ["counts", "decimals"])
@pytest.mark.parametrize("classes", ["l", "lqp", "lqpht"])
def test_optimality_conditions_hold_for_all_features(kind, classes):
    problem, columns = make_problem(kind=kind, classes=classes)
    _, means, penalties, _, q0 = problem
    fit = fit_density(*problem, tol=1e-13)
    objective, q, lam = evaluate(columns, means, penalties, q0, fit)
    assert fit.converged and 0 <= fit.dual_gap <= 1e-12
    assert_allclose(fit.objective, objective, rtol=0, atol=1e-13)
    distance = means - q @ columns
    assert (np.abs(distance) <= penalties + 1e-6).all()
    assert_allclose(distance[lam != 0], (np.sign(lam) * penalties)[lam != 0], atol=1e-6)


@pytest.mark.parametrize("max_iter", [1, 2, 4])
def test_gap_bounds_the_distance_from_the_optimum(max_iter):
    problem, columns = make_problem()
    best = fit_density(*problem, tol=1e-12).objective
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fit = fit_density(*problem, tol=1e-12, max_iter=max_iter)
    objective, *_ = evaluate(columns, problem[1], problem[2], problem[4], fit)
    assert not fit.converged and fit.n_iter <= max_iter
    assert best - 1e-12 <= objective <= best + fit.dual_gap


def test_gap_covers_features_outside_the_working_set(monkeypatch):
    problem, _ = make_problem()
    best = fit_density(*problem, tol=1e-12).objective

    def choose_few(*args):
        return [j for j in choose_violators(*args) if j % 3 == 0]

    monkeypatch.setattr(_density, "choose_violators", choose_few)
    with pytest.warns(ConvergenceWarning):
        fit = fit_density(*problem, tol=1e-12)
    assert fit.objective > best + 1e-6
    assert fit.objective - fit.dual_gap <= best


@given(st.integers(0, 10_000))
def test_random_problems_are_solved_to_a_certified_gap(seed):
    rng = np.random.default_rng(seed)
    n, k = rng.integers(3, 30), rng.integers(1, 12)
    X = rng.integers(-2, 3, (n, k)) / 4
    presence, q0 = rng.dirichlet(np.full(n, 0.3)), rng.dirichlet(np.ones(n))
    penalties = rng.choice([0.001, 0.01, 0.1], k)
    fit = fit_density(MatrixColumns(X), presence @ X, penalties, presence, q0, tol=1e-8)
    objective, q, _ = evaluate(X, presence @ X, penalties, q0, fit)
    assert fit.converged
    assert_allclose(fit.objective, objective, atol=1e-12)
    assert (np.abs((presence - q) @ X) <= penalties + 1e-3).all()


def test_sparse_columns_equal_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.random((60, 15)) * (rng.random((60, 15)) < 0.3)
    presence, q0 = rng.dirichlet(np.full(60, 0.2)), np.full(60, 1 / 60)
    fits = [
        fit_density(MatrixColumns(form(X)), presence @ X, np.full(15, 0.01), presence, q0, tol=1e-10)
        for form in (np.asarray, sparse.csr_array, sparse.csc_matrix)
    ]
    for fit in fits[1:]:
        assert_allclose(fit.objective, fits[0].objective, atol=1e-9)
        assert_array_equal(fit.used, fits[0].used)


def test_infinite_penalties_leave_features_out():
    (source, means, penalties, presence, q0), _ = make_problem(classes="lqh")
    fit = fit_density(source, means, penalties, presence, q0)
    penalties = penalties.copy()
    penalties[fit.used[0]] = np.inf
    again = fit_density(source, means, penalties, presence, q0)
    assert again.converged and fit.used[0] not in again.used


def test_large_penalties_give_the_default_distribution():
    (source, means, _, presence, q0), _ = make_problem()
    fit = fit_density(source, means, np.ones(len(means)), presence, q0)
    assert fit.converged and len(fit.used) == 0
    assert_array_equal(fit.scores, 0)
    assert fit.objective == 0 and fit.dual_gap <= 1e-6 * np.log(len(q0))


def test_scale_of_default_distribution_weights_points():
    (source, means, penalties, presence, q0), columns = make_problem(classes="lqh")
    q0 = np.random.default_rng(0).dirichlet(np.ones(len(q0)))
    fit = fit_density(source, means, penalties, presence, q0, tol=1e-11)
    objective, q, _ = evaluate(columns, means, penalties, q0, fit)
    assert_allclose(fit.objective, objective, atol=1e-12)
    assert (np.abs(means - q @ columns) <= penalties + 1e-5).all()


def test_warm_start_goes_on_from_given_weights():
    problem, _ = make_problem()
    fit = fit_density(*problem, tol=1e-9)
    again = fit_density(*problem, tol=1e-9, warm_start=(fit.used, fit.weights))
    assert again.n_iter < fit.n_iter / 2
    assert_allclose(again.objective, fit.objective, atol=1e-8)


def test_start_with_fewer_points_leads_to_the_same_optimum(monkeypatch):
    problem, _ = make_problem(n_background=2000)
    fit = fit_density(*problem, tol=1e-11)
    monkeypatch.setattr(_density, "COARSE_POINTS", 500)
    starts = []
    start_coarse = _density._start_coarse
    monkeypatch.setattr(_density, "_start_coarse", lambda *args: starts.append(start_coarse(*args)) or starts[-1])
    again = fit_density(*problem, tol=1e-11)
    assert len(starts) == 1 and len(starts[0][0]) > 3
    assert again.converged and again.n_iter < fit.n_iter
    assert_allclose(again.objective, fit.objective, rtol=0, atol=1e-10)


def test_columns_without_a_weight_leave_a_large_working_set(monkeypatch):
    problem, _ = make_problem()
    fit = fit_density(*problem, tol=1e-11)
    monkeypatch.setattr(_density, "MAX_CELLS", (len(fit.used) + 15) * len(problem[3]))
    again = fit_density(*problem, tol=1e-11)
    assert again.converged and again.n_columns < fit.n_columns
    assert_allclose(again.objective, fit.objective, rtol=0, atol=1e-10)


def test_neighbours_of_a_violator_wait():
    member = np.zeros(8, bool)
    violation = np.array([1.0, 3.0, 2.0, 2.5, 5.0, 4.0, -1.0, 0.5])
    group = np.array([0, 0, 0, 0, 4, 5, 6, 6])
    assert_array_equal(choose_violators(violation, group, member, 0), [4, 5, 1, 3, 7])
    member = np.arange(8) == 1
    assert_array_equal(choose_violators(violation, group, member, 0), [4, 5, 3, 0, 7])


# ---------------------------------------------------------------------------------------------- shared data


@needs_shared[0]
@needs_shared[1]
@pytest.mark.parametrize("species", ["bradypus", *SPECIES])
@pytest.mark.parametrize("setting", ["auto", "noprod"])
def test_gain_is_certified_and_not_below_the_programs(species, setting):
    if species == "bradypus" and setting == "noprod":
        setting = "lqh"
    background, presences, _, categorical = load_species(species)
    classes = choose_classes("auto", len(presences))
    classes = classes if setting == "auto" else classes.replace("p", "")
    problem, _ = problem_of(background, presences, categorical, classes)
    fit = fit_density(*problem, tol=1e-9)
    assert fit.converged
    assert -fit.objective >= jar_gain(setting, species) - 1e-9 * np.log(len(problem[3]))


# ------------------------------------------------------------------------------------------ general penalties


def general_costs(penalties, name):
    ones = np.ones(len(penalties))
    changes = {
        "l2": {"l2": 3.0 * penalties},
        "positive": {"low": 0 * ones},
        "limits": {"low": -0.4 * ones, "high": 0.3 * ones},
        "half-widths": {"upper": 2.5 * penalties},
        "all": {"upper": 1.5 * penalties, "l2": 0.7 * penalties, "low": -0.5 * ones, "high": 1.5 * ones},
    }
    return plain_penalties(penalties)._replace(**changes[name])


def minimise_split(columns, means, costs, q0):
    """The least objective by L-BFGS-B, each weight as the difference of two that are not negative."""
    kept = np.flatnonzero(np.isfinite(costs.lower))
    f, aim = columns[:, kept], means[kept]
    lower, upper, l2, low, high = (values[kept] for values in costs)
    n = len(kept)

    def evaluate_split(x):
        up, down = x[:n], x[n:]
        lam = up - down
        scores = f @ lam + np.log(q0)
        log_z = logsumexp(scores)
        gradient = f.T @ np.exp(scores - log_z) - aim + l2 * lam
        value = log_z - aim @ lam + lower @ up + upper @ down + 0.5 * l2 @ lam**2
        return value, np.concatenate([gradient + lower, -gradient + upper])

    limits = [(0, one) for one in high] + [(0, -one) for one in low]
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9}
    return minimize(evaluate_split, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=limits, options=options).fun


@pytest.mark.parametrize("name", ["l2", "positive", "limits", "half-widths", "all"])
def test_general_penalties_reach_the_optimum_of_explicit_columns(name):
    (source, means, penalties, presence, q0), columns = make_problem(seed=1, n_presences=15, n_background=40)
    costs = general_costs(penalties, name)
    fit = fit_density(source, means, costs, presence, q0, tol=1e-9)
    assert fit.converged
    lam = np.zeros(len(means))
    lam[fit.used] = fit.weights
    assert (lam >= costs.low).all() and (lam <= costs.high).all()
    scores = columns @ lam + np.log(q0)
    cost = np.where(lam > 0, costs.lower, costs.upper) @ np.abs(lam) + 0.5 * costs.l2 @ lam**2
    assert_allclose(fit.objective, logsumexp(scores) - lam @ means + cost, rtol=0, atol=1e-12)
    least = minimise_split(columns, means, costs, q0)
    assert fit.objective - fit.dual_gap <= least + 1e-12  # the certificate
    assert_allclose(fit.objective, least, rtol=0, atol=1e-6)
    plain = fit_density(source, means, penalties, presence, q0, tol=1e-9)
    assert fit.objective > plain.objective + 1e-4  # the change matters


@pytest.mark.parametrize("name", ["l2", "positive", "limits", "all"])
@pytest.mark.parametrize("max_iter", [1, 2, 4])
@pytest.mark.filterwarnings("ignore:training did not converge")
def test_gap_of_general_penalties_bounds_the_distance_from_the_optimum(name, max_iter):
    (source, means, penalties, presence, q0), _ = make_problem(seed=2)
    costs = general_costs(penalties, name)
    best = fit_density(source, means, costs, presence, q0, tol=1e-11)
    early = fit_density(source, means, costs, presence, q0, tol=1e-12, max_iter=max_iter)
    assert early.objective - early.dual_gap <= best.objective + 1e-12
    assert np.isfinite(early.dual_gap)


@pytest.mark.parametrize("name", ["l2", "limits", "all"])
@pytest.mark.filterwarnings("ignore:training did not converge")
def test_gap_of_general_penalties_covers_features_outside_the_working_set(monkeypatch, name):
    (source, means, penalties, presence, q0), _ = make_problem(seed=3)
    costs = general_costs(penalties, name)
    best = fit_density(source, means, costs, presence, q0, tol=1e-10)
    monkeypatch.setattr(_density, "choose_violators", lambda violation, *_: np.array([violation.argmax()])[:1])
    few = fit_density(source, means, costs, presence, q0, tol=1e-10, max_iter=6)
    assert few.objective > best.objective + 1e-5
    assert few.objective - few.dual_gap <= best.objective + 1e-12


@pytest.mark.parametrize("options", [{"l2": 2.0}, {"beta_upper": 0.2}, {"max_weight": 0.5}, {"positive": True}])
def test_general_penalties_agree_with_fit_on_columns(options):
    """The background and one class of presences: the class-conditional model of explicit columns."""
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(60, 4))
    y = (X[:, 0] + X[:, 1] > 1.2).astype(int)
    model = sl1max.fit(X, y, beta=0.1, beta_rule="count", distribution="class-conditional", tol=1e-10, **options)
    members = y == 1
    n, ones = members.sum(), np.ones(4)
    costs = BlockPenalties(
        ones * 0.1 / n,
        ones * options.get("beta_upper", 0.1) / n,
        ones * options.get("l2", 0.0) / n,
        ones * (0.0 if "positive" in options else -np.inf),
        ones * options.get("max_weight", np.inf),
    )
    density = fit_density(MatrixColumns(X), X[members].mean(axis=0), costs, members / n, np.full(60, 1 / 60), tol=1e-10)
    lam = np.zeros(4)
    lam[density.used] = density.weights
    assert_allclose(lam, model.weights.toarray()[1], atol=1e-3)
    assert np.abs(lam).max() > 0.1
