"""Evaluation of species models: AUC, omission curves, thresholds, results files; equality with the Java program."""

import csv

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("sklearn")

from sklearn.metrics import roc_auc_score
from species_data import SHARED, SPECIES, jar_model, load_species, make_species, needs_shared

from sl1max.species import SpeciesModel, evaluate, percent_contribution, permutation_importance, results_row
from sl1max.species import write_results as write_results_file
from sl1max.species._evaluation import auc, auc_and_error, evaluate_space
from sl1max.training._presences import SampleSpace


def make_data(n_presences=25):
    background, presences = make_species(n_presences=n_presences)
    return np.concatenate([background, presences]), np.arange(80 + n_presences) >= 80


@pytest.fixture(scope="module")
def fitted():
    X, y = make_data()
    return SpeciesModel("lqh", categorical_features=[3]).fit(X, y), X, y


# ------------------------------------------------------------------------------------------------------- curves


def test_auc_counts_ties_half_and_weights_as_repeated_rows():
    rng = np.random.default_rng(0)
    presence, background = rng.integers(0, 6, 12).astype(float), rng.integers(0, 5, 40).astype(float)
    w, v = rng.integers(1, 4, 12), rng.integers(1, 4, 40)
    y, scores = np.repeat([True, False], [12, 40]), np.concatenate([presence, background])
    assert_allclose(auc(presence, background), roc_auc_score(y, scores), rtol=1e-14)
    expected = roc_auc_score(y, scores, sample_weight=np.concatenate([w, v]))
    assert_allclose(auc(presence, background, w, v), expected, rtol=1e-14)
    repeated = auc_and_error(presence, np.repeat(background, v))
    assert_allclose(auc_and_error(presence, background, v), repeated, rtol=1e-12)
    assert np.isnan(auc_and_error(presence[:1], background)[1])


def test_standard_error_of_auc_is_that_of_the_bootstrap():
    rng = np.random.default_rng(0)
    presence, background = rng.normal(1, 1, 60), rng.normal(0, 1, 100)
    estimate, error = auc_and_error(presence, background)
    draws = [auc(rng.choice(presence, 60), rng.choice(background, 100)) for _ in range(2000)]
    assert_allclose(estimate, auc(presence, background), rtol=1e-14)
    assert_allclose(error, np.std(draws), rtol=0.1)


def test_omission_curve_equals_its_definition(fitted):
    model, X, y = fitted
    evaluation = evaluate(model, X, y, test_presences=X[:7])
    raw, cloglog = (model.predict_suitability(X, output) for output in ("raw", "cloglog"))
    curve = evaluation.curve
    for k in range(0, len(curve), 7):
        threshold = curve["raw"][k]
        assert_allclose(curve["area"][k], np.mean(raw >= threshold))
        assert_allclose(curve["training_omission"][k], np.mean(raw[y] < threshold))
        assert_allclose(curve["test_omission"][k], np.mean(raw[:7] < threshold))
        assert_allclose(curve["cumulative"][k], 100 * raw[raw <= threshold].sum())
    assert_allclose(np.interp(curve["raw"], np.sort(raw), np.sort(cloglog)), curve["suitability"], rtol=1e-6)
    assert evaluation.auc == pytest.approx(auc(raw[y], raw))
    assert evaluation.unregularized_gain == pytest.approx(model.unregularized_gain_)


def test_thresholds_meet_their_rules(fitted):
    model, X, y = fitted
    evaluation = evaluate(model, X, y, test_presences=X[:7])
    table, curve = evaluation.thresholds, evaluation.curve
    raw = model.predict_suitability(X, "raw")
    found = dict(zip(table["rule"].tolist(), table.rows, strict=True))
    assert len(found) == 11
    assert found["minimum training presence"]["raw"] == raw[y].min()
    assert found["10 percentile training presence"]["raw"] == np.sort(raw[y])[2]
    assert found["fixed cumulative value 5"]["cumulative"] == 5
    for name in ("training", "test"):
        omission = curve[f"{name}_omission"]
        best = found[f"maximum {name} sensitivity plus specificity"]
        assert best[f"{name}_omission"] + best["area"] == (omission + curve["area"]).min()
        equal = found[f"equal {name} sensitivity and specificity"]
        assert abs(equal[f"{name}_omission"] - equal["area"]) == np.abs(omission - curve["area"]).min()
    entropy = found["equate entropy of thresholded and original distributions"]
    assert entropy["area"] < np.exp(model.entropy_) / 105 <= entropy["area"] + 2 / 105
    assert ((table["p_value"] >= 0) & (table["p_value"] <= 1)).all()


def test_weights_in_the_evaluation_equal_repeated_rows():
    X, y = make_data()
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    model = SpeciesModel("l", categorical_features=[3]).fit(X, y, sample_weight=weight)
    weighted = evaluate(model, X, y, sample_weight=weight)
    repeated = evaluate(model, np.repeat(X, weight, axis=0), np.repeat(y, weight))
    for name in ("n_presences", "n_background", "unregularized_gain", "auc", "prevalence"):
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-12)
    for name in ("raw", "area", "training_omission", "cumulative"):
        assert_allclose(weighted.thresholds[name], repeated.thresholds[name], rtol=1e-9)


@pytest.mark.parametrize("n_presences", [1, 2])
def test_evaluation_of_few_presences(n_presences):
    X, y = make_data(n_presences=n_presences)
    evaluation = evaluate(SpeciesModel().fit(X, y), X, y, test_presences=X[:1])
    assert 0.5 <= evaluation.auc <= 1 and np.isnan(evaluation.test_auc_std)
    assert len(evaluation.thresholds) >= 10  # no area is small enough for the entropy of a uniform model


def test_test_presences_with_missing_values():
    X, y = make_data()
    model = SpeciesModel("l", missing="drop").fit(X, y)
    test = X[:3].copy()
    test[0, 0] = np.nan
    assert evaluate(model, X, y, test_presences=test).n_test == 2
    with pytest.raises(ValueError, match="every point has a missing value"):
        evaluate(model, X, y, test_presences=test[:1])


def test_labels_unknown_to_the_model_are_refused(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="y holds 2, which is not a label of the model"):
        evaluate(model, X, y.astype(int) + 1)


# -------------------------------------------------------------------------------------------------------- files


def test_results_file_has_a_row_for_each_species(fitted, tmp_path):
    model, X, y = fitted
    rows = [
        results_row("one, two", evaluate(model, X, y, test_presences=X[:3])),
        results_row("other", evaluate(model, X, y), contribution=percent_contribution(model, X, y)),
    ]
    write_results_file(tmp_path / "results.csv", rows)
    with open(tmp_path / "results.csv", newline="", encoding="utf-8") as stream:
        one, other = csv.DictReader(stream)
    assert one["Species"] == "one, two" and one["#Test samples"] == "3" and one["x0 contribution"] == ""
    assert float(other["x0 contribution"]) > 0 and other["Test AUC"] == ""
    assert_allclose(float(one["Training AUC"]), evaluate(model, X, y).auc, rtol=1e-5)


# -------------------------------------------------------------------------------------------------- shared data


def read_reference(folder, setting):
    with open(SHARED / folder / f"jar_{setting}" / "maxentResults.csv", newline="") as stream:
        return {row["Species"]: row for row in csv.DictReader(stream)}


def program_model(setting, species, presences, background, categorical, names, reference):
    """The program's model as a SpeciesModel, and its sample space."""
    space = SampleSpace(background, np.ones(len(background)), presences, np.ones(len(presences)))
    model = SpeciesModel("l", output="logistic" if setting == "logistic" else "cloglog", tol=0.1)
    X, y = np.concatenate([background, presences]), np.arange(len(background) + len(presences)) >= len(background)
    model = model.set_params(categorical_features=categorical).fit(X, y)
    model.model_ = jar_model(setting, species, names)
    model.entropy_ = model.model_.entropy
    model.gain_, model.n_iter_ = float(reference["Regularized training gain"]), int(reference["Iterations"])
    return model, space


def check_thresholds(row, reference, evaluation):
    """Equal to four digits, but for one point of the area that the program loses to rounding."""
    point = 1 / evaluation.n_background
    for k, rule in enumerate(evaluation.thresholds["rule"].tolist()):
        start = rule[0].upper() + rule[1:]
        names = [name for name in row if name.startswith(f"{start} ")]
        ours, theirs = ({name.removeprefix(start): float(one[name]) for name in names} for one in (row, reference))
        same = all(
            abs(ours[name] - theirs[name]) <= 0.51e-4 + (1.01 * point if name == " area" else 0)
            for name in ours
            if "binomial" not in name
        )
        if same:
            continue
        # A sum that is as small, or an omission as near to the area, but for two points.
        area, omission = theirs[" area"], theirs[" training omission"]
        if rule.startswith("equal training"):
            best = abs(ours[" training omission"] - ours[" area"])
            assert abs(omission - area) <= best + 2 * point + 1e-4, rule
        elif rule.startswith("balance"):
            sums = [
                6 * one[" training omission"] + 0.04 * one[" cumulative threshold"] + 1.6 * one[" area"]
                for one in (ours, theirs)
            ]
            assert abs(sums[0] - sums[1]) <= 2 * 1.6 * point + 1e-4, rule
        else:
            raise AssertionError((k, rule, ours, theirs))


@needs_shared[0]
@needs_shared[1]
@pytest.mark.parametrize(
    ("setting", "species"),
    [(setting, "bradypus") for setting in ("auto", "lqh", "thr", "logistic", "raw")]
    + [("cv", f"bradypus_{fold}") for fold in range(5)]
    + [(setting, species) for setting in ("auto", "noprod") for species in SPECIES],
)
def test_figures_equal_those_of_the_program(setting, species):
    """All of maxentResults.csv that is no random figure and no figure of training, from the program's own model."""
    folder = "bradypus" if species.startswith("bradypus") else "sa"
    reference = read_reference(folder, setting)[species]
    background, presences, names, categorical = load_species(species.split("_")[0])
    test = None
    if setting == "cv":
        path = SHARED / folder / "jar_cv" / f"{species}_samplePredictions.csv"
        with open(path, newline="") as stream:
            rows = [(int(float(row["X"])) - 1, row["Test or train"]) for row in csv.DictReader(stream)]
        train, held_out = ([k for k, use in rows if use == which] for which in ("train", "test"))
        presences, test = presences[train], presences[held_out]
    model, space = program_model(setting, species, presences, background, categorical, names, reference)
    evaluation = evaluate_space(model, space, test)
    row = results_row(species, evaluation)
    unequal_names = set(row) - set(reference)
    assert not {name for name in unequal_names if "Logistic" not in name}
    for name in (
        *("#Training samples", "Unregularized training gain", "Training AUC", "#Background points", "Entropy"),
        "Prevalence (average probability of presence over background sites)",
        *(("#Test samples", "Test gain", "Test AUC", "AUC Standard Deviation") if test is not None else ()),
    ):
        assert abs(row[name] - float(reference[name])) <= 0.501e-4, name
    check_thresholds(row, reference, evaluation)


def java_doubles(seed):
    """The random numbers of the program's permutations: a linear congruential generator."""
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def next_bits(n):
        nonlocal state
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return state >> (48 - n)

    while True:
        yield ((next_bits(26) << 27) + next_bits(27)) / float(1 << 53)


@needs_shared[0]
@needs_shared[1]
@pytest.mark.parametrize("species", ["bradypus", "sa01", "sa04"])
def test_permutation_importance_equals_the_programs_at_its_permutations(species):
    from sl1max.species._importance import permuted_auc

    setting = "auto"
    reference = read_reference("bradypus" if species == "bradypus" else "sa", setting)[species]
    background, presences, names, categorical = load_species(species)
    model, space = program_model(setting, species, presences, background, categorical, names, reference)
    random, n = java_doubles(11111), len(background) + len(presences)
    orders = [np.argsort([next(random) for _ in range(n)]) for _ in names]
    before = permuted_auc(model, space, 0, np.arange(n))
    drop = np.array([max(0.0, before - permuted_auc(model, space, j, order)) for j, order in enumerate(orders)])
    theirs = [float(reference[f"{name} permutation importance"]) for name in names]
    assert_allclose(100 * drop / drop.sum(), theirs, atol=0.05)
    X, y = np.concatenate([background, presences]), np.arange(n) >= len(background)
    ours = permutation_importance(model, X, y, random_state=0)
    assert np.corrcoef(ours["importance"], theirs)[0, 1] > 0.95
    assert (np.abs(ours["auc_drop"] - drop) <= 5 * ours["std"] + 1e-3).all()
