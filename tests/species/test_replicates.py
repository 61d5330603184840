"""Replicates, tuning, null models, blocks of places."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("sklearn")

from sklearn.metrics import roc_auc_score
from species_data import make_species

from sl1max.species import (
    SpeciesModel,
    cell_area,
    checkerboard,
    evaluate,
    null_models,
    replicate,
    spatial_blocks,
    tune,
)
from sl1max.species._model import read_rows
from sl1max.species._replicates import make_folds


@pytest.fixture(scope="module")
def fitted():
    background, presences = make_species(n_presences=25)
    X, y = np.concatenate([background, presences]), np.arange(105) >= 80
    return SpeciesModel("lq", categorical_features=[3]).fit(X, y), X, y


def folds_of(fitted, kind="cross_validation", n=5, share=0.25, groups=None):
    model, X, y = fitted
    rows = read_rows(model, X, y)
    return rows, make_folds(rows, kind, n, share, groups, 0)


# -------------------------------------------------------------------------------------------------- replicates


def test_folds_of_cross_validation_test_every_presence_once(fitted):
    rows, folds = folds_of(fitted)
    assert_array_equal(np.sort(np.concatenate([fold.test for fold in folds])), rows.presences)
    for fold in folds:
        assert_array_equal(np.sort(np.concatenate([fold.training, fold.test])), rows.presences)
        assert_array_equal(fold.background, rows.background)


def test_folds_of_the_bootstrap_are_tested_on_presences_not_drawn(fitted):
    rows, folds = folds_of(fitted, "bootstrap", n=20)
    for fold in folds:
        assert len(fold.training) == 25 and len(fold.test)
        assert not set(fold.training) & set(fold.test)
        assert_array_equal(np.union1d(fold.training, fold.test), rows.presences)
    assert len({tuple(fold.training) for fold in folds}) == 20


def test_folds_of_subsamples_have_the_share_asked_for(fitted):
    rows, folds = folds_of(fitted, "subsample", share=0.2)
    for fold in folds:
        assert len(fold.test) == 5
        assert_array_equal(np.sort(np.concatenate([fold.training, fold.test])), rows.presences)


def test_folds_of_groups_leave_out_their_background(fitted):
    groups = np.arange(105) % 3
    _, folds = folds_of(fitted, groups=groups)
    assert [fold.name for fold in folds] == [0, 1, 2]
    for fold in folds:
        assert (groups[fold.test] == fold.name).all() and (groups[fold.background] != fold.name).all()
        assert (groups[fold.training] != fold.name).all()


def test_replicate_equals_a_model_trained_by_hand(fitted):
    model, X, y = fitted
    _, folds = folds_of(fitted)
    result = replicate(model, X, y, random_state=0, n_jobs=2)
    train = np.concatenate([folds[1].background, folds[1].training])
    by_hand = SpeciesModel("lq", categorical_features=[3]).fit(X[train], y[train])
    evaluation = evaluate(by_hand, X[train], y[train], test_presences=X[folds[1].test])
    row = dict(zip(result.table.columns, result.table.rows[1].tolist(), strict=True))
    assert row["n_training"] == 20 and row["n_test"] == 5
    for name in ("gain", "auc", "test_gain", "test_auc", "test_auc_std"):
        assert_allclose(row[name], getattr(evaluation, name), rtol=1e-9)
    rules = evaluation.thresholds["rule"].tolist()
    for name, rule in (("minimum", "minimum training presence"), ("10_percentile", "10 percentile training presence")):
        expected = evaluation.thresholds["test_omission"][rules.index(rule)]
        assert_allclose(row[f"omission_{name}"], expected)
    assert_array_equal(result.models[1].decision_function(X), by_hand.decision_function(X))
    summary = dict(zip(result.summary["figure"].tolist(), result.summary["mean"].tolist(), strict=True))
    assert_allclose(summary["test_auc"], result.table["test_auc"].mean())
    assert "5 replicates" in repr(result)


def test_groups_are_tested_against_the_whole_background(fitted):
    model, X, y = fitted
    groups = np.arange(105) % 2
    result = replicate(model, X, y, groups=groups)
    for name, one, test_auc in zip(*(result.table["replicate"], result.models, result.table["test_auc"]), strict=True):
        tested = y & (groups == name)
        # Presences in training are points of the sample space if they equal no background point of its group.
        rows = ~y | (y & ~tested)
        assert one.n_presences_ == np.count_nonzero(y & ~tested)
        scores = one.decision_function(X)
        labels = np.repeat([True, False], [tested.sum(), rows.sum()])
        expected = roc_auc_score(labels, np.concatenate([scores[tested], scores[rows]]))
        assert abs(test_auc - expected) < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "loo"}, "kind must be one of"),
        ({"n_replicates": 26}, "between 2 and the number of presences, 25"),
        ({"n_replicates": 1}, "between 2 and the number of presences"),
        ({"kind": "subsample", "test_share": 1.0}, "test_share"),
        ({"groups": np.zeros(3)}, "an entry for each of the 105 rows"),
        ({"groups": np.zeros(105)}, "all of one group"),
        ({"groups": (np.arange(105) >= 90).astype(int)}, None),
        ({"groups": np.where(np.arange(105) < 90, 0, 1)}, None),
    ],
)
def test_wrong_replicates_are_refused(fitted, options, message):
    if message is None:  # presences of both groups, background of one: there is no background without it
        with pytest.raises(ValueError, match="there is no background"):
            replicate(*fitted, **options)
    else:
        with pytest.raises(ValueError, match=message):
            replicate(*fitted, **options)


def test_one_presence_cannot_be_divided():
    background, presences = make_species(n_presences=1)
    X, y = np.concatenate([background, presences]), np.arange(81) >= 80
    with pytest.raises(ValueError, match="there is one presence"):
        replicate(SpeciesModel().fit(X, y), X, y)


# ------------------------------------------------------------------------------------------------------ tuning


def test_tuning_compares_all_settings_on_the_same_folds(fitted):
    model, X, y = fitted
    options = {"features": ["l", "lqh"], "beta_multipliers": [0.5, 2], "random_state": 0}
    tuning = tune(model, X, y, **options)
    table = tuning.table
    assert table["features"].tolist() == ["l", "l", "lqh", "lqh"]
    assert table["beta_multiplier"].tolist() == [0.5, 2, 0.5, 2]
    one = SpeciesModel("lqh", beta_multiplier=2, categorical_features=[3]).fit(X, y)
    k, log_likelihood = len(one.features_), np.log(one.predict_suitability(X[y], "raw")).sum()
    assert table["n_weights"][3] == k
    assert_allclose(table["aicc"][3], 2 * k - 2 * log_likelihood + 2 * k * (k + 1) / (25 - k - 1))
    assert_allclose(table["test_auc"][3], replicate(one, X, y, random_state=0).table["test_auc"].mean())
    assert table["delta_aicc"].min() == 0 and tuning.best == np.argmin(table["aicc"])
    assert tuning.model.beta_multiplier == table["beta_multiplier"][tuning.best]
    assert_array_equal(tune(model, X, y, **options, n_jobs=2).table.rows, table.rows)
    by_auc = tune(model, X, y, **options, rule="test_auc")
    assert by_auc.table["test_auc"][by_auc.best] == table["test_auc"].max()
    by_omission = tune(model, X, y, **options, rule="omission")
    assert by_omission.table["omission_10_percentile"][by_omission.best] == table["omission_10_percentile"].min()


def test_wrong_settings_are_refused(fitted):
    model, X, y = fitted
    for options, message in (
        ({"rule": "bic"}, "rule must be one of"),
        ({"features": []}, "one setting at least"),
        ({"features": ["xyz"]}, "features must be"),
        ({"beta_multipliers": [-1]}, "beta_multiplier must be"),
    ):
        with pytest.raises(ValueError, match=message):
            tune(model, X, y, **options)


def test_too_many_weights_have_no_aicc():
    background, presences = make_species(n_presences=3)
    X, y = np.concatenate([background, presences])[:, :3], np.arange(83) >= 80
    model = SpeciesModel("lqh").fit(X, y)
    options = {"features": ["lqh"], "beta_multipliers": [0.01], "kind": "subsample", "random_state": 0}
    with pytest.raises(ValueError, match="no setting has an AICc"):
        tune(model, X, y, **options)
    assert tune(model, X, y, **options, rule="test_auc").table["aicc"].tolist() == [np.inf]


# ------------------------------------------------------------------------------------------------- null models


def test_null_models_tell_a_species_from_chance(fitted):
    model, X, y = fitted
    table = null_models(model, X, y, n_models=20, test_presences=X[-6:], random_state=0, n_jobs=2)
    assert table["figure"].tolist() == ["gain", "auc", "test_auc"]
    assert table["observed"][0] == model.gain_
    assert (table["effect"][:2] > 2).all() and table["effect"][2] > 1 and (table["p_value"][:2] < 0.1).all()
    by_chance = y[np.random.default_rng(0).permutation(105)]
    random = null_models(SpeciesModel("lq", categorical_features=[3]).fit(X, by_chance), X, by_chance, n_models=20)
    assert (random["p_value"] > 0.04).all() and (np.abs(random["effect"]) < 4).all()


def test_more_presences_than_background_points_have_no_null_models():
    background, presences = make_species(n_background=10, n_presences=20)
    X, y = np.concatenate([background, presences]), np.arange(30) >= 10
    with pytest.raises(ValueError, match="fewer points than there are presences, 20"):
        null_models(SpeciesModel("l").fit(X, y), X, y)


# ------------------------------------------------------------------------------------------------------ places


@pytest.mark.parametrize("n_blocks", [2, 3, 4, 7])
def test_blocks_hold_equally_many_presences_and_are_convex(n_blocks):
    rng = np.random.default_rng(0)
    places, y = rng.normal(size=(400, 2)) * [3, 1], np.arange(400) >= 300
    blocks = spatial_blocks(places, y, n_blocks)
    counts = np.bincount(blocks[y])
    assert len(counts) == n_blocks and np.ptp(counts) <= 2
    boxes = [(places[blocks == k].min(axis=0), places[blocks == k].max(axis=0)) for k in range(n_blocks)]
    for k, (low, high) in enumerate(boxes):
        inside = ((places >= low) & (places <= high)).all(axis=1)
        assert (blocks[inside] == k).all()


def test_blocks_do_not_divide_equal_places():
    places = np.repeat([[0.0, 0], [1, 0], [2, 0]], [7, 2, 1], axis=0)
    assert spatial_blocks(np.append(places, [[5, 5]], axis=0), [1] * 10 + [0], 2).tolist() == [0] * 7 + [1] * 4
    with pytest.raises(ValueError, match="too few places"):
        spatial_blocks(np.append(places[:7], [[5, 5]], axis=0), [1] * 7 + [0], 2)


def test_checkerboard_alternates():
    board = checkerboard(np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2) + 0.5, 1.0)
    assert_array_equal(board.reshape(4, 4), (np.add.outer(np.arange(4), np.arange(4))) % 2)


def test_wrong_places_are_refused():
    with pytest.raises(ValueError, match="x and y of every row"):
        checkerboard([[1.0, np.nan]], 1.0)
    with pytest.raises(ValueError, match="an entry for each of the 2"):
        spatial_blocks([[1, 2], [3, 4]], [1])
    with pytest.raises(ValueError, match="two labels"):
        spatial_blocks([[1, 2], [3, 4]], [1, 1])
    with pytest.raises(ValueError, match="longitude and latitude swapped"):
        cell_area([120.0])
