"""Beta paths, and the choice of beta by cross-validation."""

import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import sl1max
from sl1max import MaxentClassifier, MaxentClassifierCV
from sl1max.training._path import zero_beta

MODELS = [
    (distribution, label_mode)
    for distribution in ("conditional", "joint", "class-conditional")
    for label_mode in ("exclusive", "independent")
]


def make_data(seed=0, n_samples=120, n_features=8):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_samples, n_features)) < 0.4).astype(float)
    y = np.where(rng.random(n_samples) < 0.2, rng.integers(0, 3, n_samples), X[:, 0] + X[:, 1]).astype(int)
    return X, y


# Paths


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("beta_rule", ["deviation", "count"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_zero_beta(distribution, label_mode, beta_rule, fit_intercept):
    X, y = make_data()
    options = {
        "distribution": distribution,
        "label_mode": label_mode,
        "beta_rule": beta_rule,
        "fit_intercept": fit_intercept,
        "sample_weight": np.random.default_rng(1).random(len(y)),
    }
    beta = zero_beta(X - 0.3, y, **options)
    n_weights = [sl1max.fit(X - 0.3, y, beta=share * beta, tol=1e-10, **options).weights.nnz for share in (1, 0.999)]
    assert n_weights[0] == 0 < n_weights[1]


def test_zero_beta_of_two_classes_with_offset():
    X, y = make_data()
    y = np.minimum(y, 1)
    offset = np.random.default_rng(0).normal(size=(len(y), 2))
    beta = zero_beta(X, y, offset=offset)
    assert sl1max.fit(X, y, offset=offset, beta=beta, tol=1e-10).weights.nnz == 0
    assert sl1max.fit(X, y, offset=offset, beta=0.999 * beta, tol=1e-10).weights.nnz > 0


@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_path(distribution, label_mode):
    X, y = make_data()
    options = {"distribution": distribution, "label_mode": label_mode, "tol": 1e-9}
    result = sl1max.path(X, y, betas=6, **options)
    assert len(result) == len(result.models) == len(result.betas) == 6
    assert result.betas[0] == zero_beta(X, y, distribution=distribution, label_mode=label_mode)
    assert result.betas[-1] == pytest.approx(result.betas[0] / 1000)
    assert (np.diff(result.betas) < 0).all()
    assert result.n_nonzero[0] == 0 < result.n_nonzero[-1]
    assert (np.diff(result.objective, axis=0) <= 1e-12).all()
    assert np.all(result.objective[-1] < result.objective[0])
    for beta, model, objective, gap in zip(result.betas, result.models, result.objective, result.gaps, strict=True):
        assert model.beta == beta
        cold = sl1max.fit(X, y, beta=beta, **options)
        np.testing.assert_allclose(objective, cold.objective, rtol=1e-8)
        np.testing.assert_array_equal(gap, model.dual_gap)


def test_path_starts_warm():
    X, y = make_data()
    betas = np.geomspace(2, 1.5, 10)
    result = sl1max.path(X, y, betas=betas, tol=1e-8)
    cold = [sl1max.fit(X, y, beta=beta, tol=1e-8).n_iter for beta in betas]
    assert sum(model.n_iter for model in result.models) < sum(cold)


def test_betas_given():
    X, y = make_data()
    result = sl1max.path(X, y, betas=[0.1, 3, 1, 1])
    np.testing.assert_array_equal(result.betas, [3, 1, 0.1])
    assert len(sl1max.path(X, y, max_iter=1000, tol=0.5)) == 30
    for betas in ([], [-1.0], [np.nan], 0, "a"):
        with pytest.raises(ValueError, match=r"^betas"):
            sl1max.path(X, y, betas=betas)
    with pytest.raises(ValueError, match="distribution='x' is unknown"):
        sl1max.path(X, y, distribution="x")


def test_path_of_one_class():
    X, y = make_data()
    names = np.array(["a", "b", "c"])[y]
    result = sl1max.path(X, names, betas=4)
    coef = result.coef("b")
    assert coef.shape == (4, X.shape[1])
    np.testing.assert_array_equal(coef[-1], result.models[-1].weights.toarray()[1])
    with pytest.raises(ValueError, match="label='d' is not a class"):
        result.coef("d")


def test_path_of_features_that_tell_nothing():
    result = sl1max.path(np.ones((6, 2)), [0, 1] * 3, betas=2)
    assert (result.n_nonzero == 0).all()


# Choice of beta


# Weights and repeated rows give models that are equal as far as tol goes; scikit-learn asks for nine digits.
@parametrize_with_checks([MaxentClassifierCV(betas=4, tol=1e-10)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", make_scorer(accuracy_score)])
def test_same_as_grid_search(scoring):
    X, y = make_data()
    betas = [4.0, 1.0, 0.3, 0.1]
    search = MaxentClassifierCV(betas=betas, scoring=scoring, tol=1e-9, cv=3).fit(X, y)
    grid = GridSearchCV(MaxentClassifier(tol=1e-9), {"beta": betas}, scoring=scoring, cv=3).fit(X, y)
    for name in ("mean_test_score", "std_test_score", "split0_test_score", "split2_test_score"):
        np.testing.assert_allclose(search.cv_results_[name], grid.cv_results_[name], rtol=1e-4, atol=1e-9)
    np.testing.assert_array_equal(search.cv_results_["rank_test_score"], grid.cv_results_["rank_test_score"])
    np.testing.assert_array_equal(search.cv_results_["param_beta"], betas)
    assert search.best_params_ == {
        "beta": grid.best_params_["beta"],
        "distribution": "conditional",
        "label_mode": "auto",
    }
    assert search.beta_ == search.model_.beta == grid.best_params_["beta"]
    assert search.best_index_ == grid.best_index_ and search.n_splits_ == 3
    assert search.best_score_ == pytest.approx(grid.best_score_, rel=1e-4)
    np.testing.assert_allclose(search.coef_, grid.best_estimator_.coef_, atol=1e-6)
    assert search.score(X, y) == pytest.approx(grid.score(X, y), rel=1e-4)


def test_choice_of_the_model():
    X, y = make_data()
    search = MaxentClassifierCV(
        betas=3, distribution=["conditional", "joint"], label_mode=["exclusive", "independent"], cv=3
    ).fit(X, y)
    table = search.cv_results_
    assert len(table["params"]) == 12
    assert set(zip(table["param_distribution"], table["param_label_mode"], strict=True)) == {
        (distribution, label_mode)
        for distribution in ("conditional", "joint")
        for label_mode in ("exclusive", "independent")
    }
    assert table["mean_test_score"][search.best_index_] == table["mean_test_score"].max() == search.best_score_
    assert search.model_.distribution == search.best_params_["distribution"]
    assert search.model_.label_mode == search.best_params_["label_mode"]
    assert (table["mean_fit_time"] > 0).all()
    assert (table["mean_n_nonzero"][::3] <= table["mean_n_nonzero"][2::3]).all()


def test_threads_and_report(capsys):
    X, y = make_data()
    one = MaxentClassifierCV(betas=3, cv=3, n_jobs=1, verbose=1).fit(X, y)
    assert len(capsys.readouterr().err.splitlines()) == 3
    two = MaxentClassifierCV(betas=3, cv=3, n_jobs=2).fit(sparse.csc_array(X), y)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_indicator():
    X, _ = make_data()
    Y = sparse.csr_array(X[:, :3])
    search = MaxentClassifierCV(betas=3, cv=3, scoring="f1_micro").fit(X, Y)
    assert sparse.issparse(search.predict(X)) and search.best_score_ > 0.9


def test_as_an_estimator():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    search = MaxentClassifierCV(betas=[1.0, 0.1], cv=KFold(3), class_weight="balanced")
    assert clone(search).betas == [1.0, 0.1]
    assert np.isfinite(cross_val_score(search, frame, y, cv=2)).all()
    assert search.fit(frame, y).feature_names_in_.tolist() == list("abcdefgh")
    np.testing.assert_array_equal(search.predict_top_k(frame, 1)[:, 0], search.predict(frame))


def test_weights_groups_and_routing():
    X, y = make_data()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    groups = np.arange(len(y)) % 4
    search = MaxentClassifierCV(betas=[1.0, 0.1], cv=GroupKFold(4), scoring="accuracy")
    search.fit(X, y, sample_weight=weight, groups=groups)
    assert search.n_splits_ == 4
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = sklearn.metrics.get_scorer("accuracy").set_score_request(sample_weight=True)
        routed = MaxentClassifierCV(betas=[1.0, 0.1], cv=GroupKFold(4), scoring=scorer)
        routed.fit(X, y, sample_weight=weight, groups=groups)
    np.testing.assert_array_equal(routed.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    with pytest.raises(TypeError, match="fit takes colour only with metadata routing enabled"):
        search.fit(X, y, colour=groups)


# One standard error, ends of the grid


def test_one_standard_error_takes_the_largest_beta_that_is_good_enough():
    X, y = make_data(seed=3, n_samples=300)
    options = {"betas": 15, "cv": 5, "scoring": "neg_log_loss", "label_mode": ["independent", "exclusive"]}
    best = MaxentClassifierCV(**options).fit(X, y)
    sparse_one = MaxentClassifierCV(selection="one_standard_error", **options).fit(X, y)
    results = best.cv_results_
    scores = np.array([results[f"split{k}_test_score"][best.best_index_] for k in range(5)])
    assert best.standard_error_ == pytest.approx(scores.std(ddof=1) / np.sqrt(5))
    same = results["param_label_mode"] == best.best_params_["label_mode"]
    enough = results["mean_test_score"] >= best.best_score_ - best.standard_error_
    assert sparse_one.beta_ == results["param_beta"][same & enough].max() > best.beta_
    assert sparse_one.best_params_["label_mode"] == best.best_params_["label_mode"]
    assert sparse_one.model_.weights.nnz < best.model_.weights.nnz
    assert sparse_one.best_score_ == results["mean_test_score"][sparse_one.best_index_]


def test_a_best_beta_at_the_end_of_the_grid_is_said():
    X, y = make_data(n_samples=300)
    with pytest.warns(UserWarning, match="is the smallest of those tried"):
        MaxentClassifierCV(betas=[20, 10, 1], scoring="neg_log_loss").fit(X, y)
    with pytest.warns(UserWarning, match="is the largest of those tried"):
        MaxentClassifierCV(betas=[0.5, 1e-3, 1e-4], scoring="neg_log_loss").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        MaxentClassifierCV(betas=[1.0]).fit(X, y)
        MaxentClassifierCV(betas=12, scoring="neg_log_loss").fit(X, y)


def test_selection_is_checked():
    with pytest.raises(ValueError, match="selection='first' is unknown"):
        MaxentClassifierCV(selection="first").fit(*make_data())
