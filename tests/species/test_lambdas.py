"""Models as .lambdas files: predictions by hand, reading, writing, and what is refused."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sl1max.exceptions import ModelFileError
from sl1max.species import read_lambdas

FILE = """(soil=1.0), 0.0, 0.0, 1.0
(soil=3.0), 0.25, 0.0, 1.0
rain, 0.5, 0.0, 10.0
warm, 0.0, -5.0, 5.0
rain^2, -0.75, 0.0, 100.0
rain*warm, 1.5, -40.0, 40.0
(2.5<rain), 0.125, 0.0, 1.0
'warm, 2.0, 1.5, 5.0
`warm, -1.0, -5.0, 0.5
linearPredictorNormalizer, 1.75
densityNormalizer, 12.5
numBackgroundPoints, 100
entropy, 4.25
"""
POINTS = np.array([[3.0, 4.0, 2.0], [1.0, 1.0, -3.0], [3.0, 20.0, 9.0], [2.0, -4.0, 0.0]])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "one.lambdas"
    path.write_text(FILE)
    return path


def score_by_hand(soil, rain, warm, clamp):
    rain_base, warm_base = (min(max(rain, 0), 10), min(max(warm, -5), 5)) if clamp else (rain, warm)

    def limit(value):
        return min(max(value, 0.0), 1.0) if clamp else value

    return (
        0.25 * (soil == 3)
        + 0.5 * limit(rain_base / 10)
        - 0.75 * limit(rain_base**2 / 100)
        + 1.5 * limit((rain_base * warm_base + 40) / 80)
        + 0.125 * (rain > 2.5)
        + 2.0 * limit(max(warm - 1.5, 0) / 3.5)
        - 1.0 * limit(max(0.5 - warm, 0) / 5.5)
        - 1.75
    )


@pytest.mark.parametrize("clamp", [True, False])
def test_scores_equal_those_by_hand(path, clamp):
    model = read_lambdas(path)
    expected = [score_by_hand(*point, clamp) for point in POINTS]
    assert_allclose(model.linear_predictor(POINTS, clamp=clamp), expected, rtol=1e-13, atol=1e-13)


def test_outputs_equal_their_formulas(path):
    model = read_lambdas(path)
    raw = np.exp(model.linear_predictor(POINTS)) / 12.5
    odds = raw * math.exp(4.25)
    assert_allclose(model.predict(POINTS, output="raw"), raw, rtol=1e-13)
    assert_allclose(model.predict(POINTS), 1 - np.exp(-odds), rtol=1e-13)
    assert_allclose(model.predict(POINTS, output="logistic"), odds / (1 + odds), rtol=1e-13)
    assert_allclose(model.decision_function(POINTS), np.log(odds) - math.log(math.log(2)), rtol=1e-12)
    assert_array_equal(model.decision_function(POINTS) > 0, model.predict(POINTS) > 0.5)


def test_raw_output_is_at_most_one(path):
    model = read_lambdas(path)
    far = np.array([[3.0, 1e6, 1e6]])
    assert model.predict(far, output="raw", clamp=False) == 1
    assert model.predict(far, output="raw") < 1


def test_missing_values_have_no_prediction(path):
    points = POINTS.copy()
    points[1, 0] = points[2, 1] = np.nan
    assert_array_equal(np.isnan(read_lambdas(path).predict(points)), [False, True, True, False])


def test_unknown_output_is_refused(path):
    with pytest.raises(ValueError, match="output must be one of"):
        read_lambdas(path).predict(POINTS, output="probability")


def test_cumulative_output_of_a_file_is_refused(path):
    with pytest.raises(ValueError, match="cumulative"):
        read_lambdas(path).predict(POINTS, output="cumulative")


def test_columns_of_a_frame_are_found_by_name(path):
    pd = pytest.importorskip("pandas")
    model = read_lambdas(path)
    frame = pd.DataFrame(POINTS[:, ::-1], columns=["warm", "rain", "soil"]).assign(other=1)
    assert model.feature_names == ["soil", "rain", "warm"]
    assert_array_equal(model.predict(frame), model.predict(POINTS))
    with pytest.raises(ValueError, match="'rain'"):
        model.predict(frame.drop(columns="rain"))


def test_order_of_an_array_can_be_given(path):
    model = read_lambdas(path, feature_names=["warm", "unused", "rain", "soil"])
    X = np.column_stack([POINTS[:, 2], np.full(4, 77.0), POINTS[:, 1], POINTS[:, 0]])
    assert_array_equal(model.predict(X), read_lambdas(path).predict(POINTS))
    with pytest.raises(ValueError, match="lacks 'soil'"):
        read_lambdas(path, feature_names=["warm", "rain"])


def test_written_file_is_read_back(path, tmp_path):
    model = read_lambdas(path)
    again = tmp_path / "again.lambdas"
    model.to_lambdas(again)
    assert_array_equal(read_lambdas(again).predict(POINTS), model.predict(POINTS))
    assert again.read_text() == FILE


def test_written_file_keeps_linear_features_and_first_categories(path, tmp_path):
    path.write_text(FILE.replace("'warm, 2.0", "'warm, 0.0").replace("(soil=3.0), 0.25", "(soil=3.0), 0.0"))
    read_lambdas(path).to_lambdas(tmp_path / "again.lambdas")
    names = [line.split(",")[0] for line in (tmp_path / "again.lambdas").read_text().splitlines()]
    assert names[:3] == ["(soil=1.0)", "rain", "warm"]
    assert "'warm" not in names


def test_covariate_names_that_the_file_cannot_hold_are_refused(path, tmp_path):
    from dataclasses import replace

    model = read_lambdas(path)
    odd = replace(model, covariates=replace(model.covariates, names=("soil", "rain*2", "warm")))
    with pytest.raises(ValueError, match=r"rain\*2"):
        odd.to_lambdas(tmp_path / "odd.lambdas")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rain^2, -0.75, 0.0, 100.0", "rain^2, -0.75", "line 5"),
        ("(2.5<rain), 0.125", "(warm<rain), 0.125", "line 7"),
        ("entropy, 4.25\n", "", "has no entropy"),
        (FILE, "", "is not a .lambdas file"),
        (FILE[: FILE.index("linear")], "", "has no features"),
        ("entropy, 4.25", "entropy, high", "line 13"),
        ("entropy, 4.25", "entropy, 800", "line 13"),
        ("densityNormalizer, 12.5", "densityNormalizer, 0", "line 11"),
        ("rain^2, -0.75, 0.0", "rain^2, -0.75, -1.0", "line 5"),
        ("rain^2, -0.75", "rain^2, nan", "line 5"),
        ("rain^2, -0.75, 0.0", "rain^2, -0.75, 1e3", "line 5"),
        ("rain^2, -0.75, 0.0, 100.0", "rain^2, -0.75, 0.0, inf", "line 5"),
        ("rain^2, -0.75", "soil^2, -0.75", "'soil' has categories and other features"),
    ],
)
def test_damaged_file_is_refused(path, old, new, message):
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ModelFileError, match=message):
        read_lambdas(path)


def test_file_of_other_text_is_refused(path):
    path.write_bytes(FILE.encode("utf-16"))
    with pytest.raises(ModelFileError, match=r"one\.lambdas is not a \.lambdas file: 'utf-8' codec can't decode"):
        read_lambdas(path)


def test_covariate_that_only_a_product_has(path):
    path.write_text(FILE.replace("rain*warm", "rain*wind"))
    assert read_lambdas(path).feature_names == ["soil", "rain", "warm", "wind"]


def test_model_read_from_a_file_is_evaluated_like_the_trained_one(tmp_path):
    from sl1max._data.covariates import NamedColumns
    from sl1max.species import SpeciesModel, evaluate, permutation_importance

    rng = np.random.default_rng(0)
    values, y = rng.normal(size=(140, 2)), np.arange(140) >= 100
    values[y] += [0.8, 0]
    X = NamedColumns(values, ["warm", "rain"])
    model = SpeciesModel("lqh", output="logistic").fit(X, y)
    model.to_lambdas(tmp_path / "fir.lambdas")
    again = SpeciesModel.from_lambdas(read_lambdas(tmp_path / "fir.lambdas"), output="logistic")
    np.testing.assert_allclose(again.predict_suitability(X), model.predict_suitability(X), rtol=1e-12)
    assert again.features_["weight"].tolist() == model.features_["weight"].tolist()
    one, other = evaluate(again, X, y.astype(int)), evaluate(model, X, y)
    assert np.isnan(one.gain) and one.auc == other.auc
    np.testing.assert_allclose(one.unregularized_gain, other.unregularized_gain, rtol=1e-12)
    np.testing.assert_allclose(one.thresholds["cumulative"], other.thresholds["cumulative"], rtol=1e-9)
    shares = [permutation_importance(m, X, y.astype(int), random_state=0)["importance"] for m in (again, model)]
    np.testing.assert_allclose(*shares, rtol=1e-9)
    with pytest.raises(ValueError, match="labels must be two that ascend"):
        SpeciesModel.from_lambdas(again.model_, labels=("yes", "no"))


def test_background_gives_the_cumulative_output(tmp_path):
    from sl1max.species import SpeciesModel

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 1)), np.arange(80) >= 60
    model = SpeciesModel("lq").fit(X, y)
    model.to_lambdas(tmp_path / "fir.lambdas")
    again = read_lambdas(tmp_path / "fir.lambdas").with_background(X)
    np.testing.assert_allclose(
        again.predict(X, output="cumulative"), model.predict_suitability(X, "cumulative"), rtol=1e-9
    )
    with pytest.raises(ValueError, match="every point of the background has a missing value"):
        again.with_background([[np.nan]])
