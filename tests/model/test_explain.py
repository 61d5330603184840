"""What a model says of itself: greatest weights, and the constraints that made them."""

import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax

import sl1max
from sl1max._data.moments import Moments
from sl1max._data.penalties import Penalties
from sl1max.model._explain import Table

N_FEATURES = 15
NAMES = [f"word{j}" for j in range(N_FEATURES)]
CASES = [
    (distribution, label_mode)
    for distribution in ("conditional", "joint", "class-conditional")
    for label_mode in ("exclusive", "independent")
]


def make_data(n_classes=3, seed=0, values="binary"):
    rng = np.random.default_rng(seed)
    X = (rng.random((80, N_FEATURES)) < 0.3).astype(float)
    y = rng.integers(0, n_classes, 80)
    X[np.arange(80), y] = 1
    if values == "real":
        X *= rng.normal(size=X.shape) * 3
    return X, y


def expected_means(model, X, weight, c, side):
    """q[f] of block (c, side) from the formulas of the five models, and what the cells of the block weigh."""
    share = weight / weight.sum()
    if model.distribution == "conditional":
        prob = np.exp(model._log_proba(X))[:, c]
        return (share * (prob if side == "class" else 1 - prob)) @ X
    row = model.weights if model._parts is None else model._parts[0 if side == "class" else 1]
    scores = X @ row.toarray().T[:, c]
    within = softmax(scores + np.log(weight)) @ X
    if model.distribution == "class-conditional":
        return within
    prior = model.class_prior[c]
    return within * (prior if side == "class" else 1 - prior)


def rows_of(table, label, side=None):
    keep = table["class"] == label
    return table[keep if side is None else keep & (table["side"] == side)]


@pytest.mark.parametrize("values", ["binary", "real"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("distribution", "label_mode"), CASES)
def test_constraints_against_the_formulas(distribution, label_mode, n_classes, weighted, values):
    X, y = make_data(n_classes, values=values)
    weight = np.random.default_rng(1).integers(1, 4, 80).astype(float) if weighted else np.ones(80)
    options = {"sample_weight": weight} if weighted else {}
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, tol=1e-8, **options)
    table = sl1max.constraints(model, X, y, features=list(range(N_FEATURES)), **options)
    sides = [None]
    if label_mode == "independent":
        sides = ["class"] if distribution == "class-conditional" else ["class", "non-class"]
    assert len(table) == n_classes * len(sides) * N_FEATURES
    for c in range(n_classes):
        for side in sides:
            rows = rows_of(table, c, side)
            rows = rows[np.argsort(rows["feature"])]
            member = (y == c) if side != "non-class" else (y != c)
            mass = weight[member].sum() if distribution == "class-conditional" else weight.sum()
            np.testing.assert_allclose(rows["target"], (weight * member) @ X / mass, atol=1e-12)
            expected = expected_means(model, X, weight, c, side or "class")
            np.testing.assert_allclose(rows["expectation"], expected, atol=1e-9)
            part = model.weights if side is None else model._parts[side == "non-class"]
            np.testing.assert_array_equal(rows["weight"], part[[c]].toarray().ravel())
    check_optimality(table)


def check_optimality(table):
    """The interval holds the expectation; a weight is against the end at which it lies."""
    half = (table["upper"] - table["lower"]) / 2
    np.testing.assert_allclose(table["upper"] + table["lower"], 2 * table["target"], atol=1e-12)
    departure = table["expectation"] - table["target"]
    assert (np.abs(departure) <= half * 1.001).all()
    active = table["weight"] != 0
    assert active.any()
    np.testing.assert_allclose(departure[active], (-np.sign(table["weight"]) * half)[active], rtol=2e-2)
    assert table["binds"][active].all()
    assert not table["binds"][np.abs(departure) < 0.98 * half].any()


def test_beta_is_that_of_the_rules():
    """The half width of the interval is what `Penalties` gave the solver."""
    from sl1max._data.inputs import Strengths, read_beta, read_data

    X, y = make_data()
    for distribution in ("conditional", "joint", "class-conditional"):
        for rule in ("deviation", "count"):
            model = sl1max.fit(X, y, distribution=distribution, beta_rule=rule)
            table = sl1max.constraints(model, X, y, label=1, features=list(range(N_FEATURES)))
            data = read_data(
                X, y, distribution=distribution, label_mode="auto", multilabel_weighting="duplicate", solver="auto",
                sample_weight=None, offset=None,
            )  # fmt: skip
            penalties = Penalties(data, Moments(data), distribution, Strengths(read_beta(0.5, 3, N_FEATURES), rule))
            beta = penalties.block(1, 1)[table["feature"]]
            np.testing.assert_allclose(table["upper"] - table["target"], beta)


@pytest.mark.parametrize("label_mode", ["exclusive", "independent"])
def test_joint_without_intercept(label_mode):
    X, y = make_data()
    model = sl1max.fit(X, y, distribution="joint", label_mode=label_mode, fit_intercept=False, tol=1e-9)
    table = sl1max.constraints(model, X, y, features=list(range(N_FEATURES)))
    if label_mode == "exclusive":
        prob = np.exp(model.scores(X) - model.log_z)
        for c in range(3):
            rows = rows_of(table, c)
            np.testing.assert_allclose(rows["expectation"], (prob[:, c] @ X)[rows["feature"]], atol=1e-9)
    check_optimality(table)


def test_indicator_offset_and_constant_class():
    X, y = make_data()
    indicator = np.column_stack([y == 0, y != 2, np.zeros(80)]).astype(float)
    offset = np.random.default_rng(3).normal(size=(80, 3))
    with pytest.warns(UserWarning, match="constant"):
        model = sl1max.fit(X, indicator, offset=offset, tol=1e-9)
    table = sl1max.constraints(model, sparse.csr_matrix(X), indicator, offset=offset)
    assert set(table["class"].tolist()) == {0, 1}
    prob = expit(model.decision_function(X, offset))
    rows = rows_of(table, 1, "class")
    np.testing.assert_allclose(rows["expectation"], (prob[:, 1] @ X / 80)[rows["feature"]], atol=1e-9)
    check_optimality(table)


def test_several_labels_per_example():
    X, y = make_data()
    indicator = np.column_stack([y == 0, y >= 1, y == 2])
    for multilabel_weighting in ("duplicate", "equal"):
        model = sl1max.fit(X, indicator, label_mode="exclusive", multilabel_weighting=multilabel_weighting, tol=1e-9)
        check_optimality(sl1max.constraints(model, X, indicator, multilabel_weighting=multilabel_weighting))


def test_what_is_listed():
    X, y = make_data()
    labels = np.array(["ham", "spam", "eggs"])[y]
    model = sl1max.fit(X, labels, tol=1e-8)
    table = sl1max.constraints(model, X, labels, feature_names=NAMES)
    assert table.columns == (
        "class", "feature", "target", "lower", "upper", "expectation", "binds", "weight",
    )  # fmt: skip
    assert table["binds"].all() and len(table) >= model.weights.nnz
    for label in model.classes:
        assert (np.diff(np.abs(rows_of(table, label)["weight"])) <= 0).all()
    two = sl1max.constraints(model, X, labels, label=["spam", "ham"], features=["word3", 1], feature_names=NAMES)
    assert two["class"].tolist() == ["spam", "spam", "ham", "ham"]
    assert set(two["feature"].tolist()) == {"word1", "word3"}
    one = sl1max.constraints(model, X, labels, label="spam", features=1)
    assert len(one) == 1 and one["feature"].tolist() == [1]


def test_no_binding_constraint():
    X, y = make_data()
    table = sl1max.constraints(sl1max.fit(X, y, beta=1e6), X, y)
    assert len(table) == 0
    assert repr(table).startswith("class  feature")


def test_left_out_and_unpenalised_features():
    X, y = make_data()
    beta = np.full(N_FEATURES, 0.5)
    beta[0], beta[5] = np.inf, 0
    model = sl1max.fit(X, y, beta=beta, tol=1e-9)
    with pytest.raises(ValueError, match="beta was an array"):
        sl1max.constraints(model, X, y)
    table = sl1max.constraints(model, X, y, label=0, features=[0, 5], beta=beta)
    left_out, free = table[table["feature"] == 0], table[table["feature"] == 5]
    assert left_out["upper"] == np.inf and left_out["lower"] == -np.inf and not left_out["binds"]
    assert free["lower"] == free["upper"] == free["target"] and free["binds"]


def test_constraints_refuse_other_data():
    X, y = make_data()
    model = sl1max.fit(X, y)
    with pytest.raises(ValueError, match="X has 14 features, but the model was trained with 15"):
        sl1max.constraints(model, X[:, 1:], y)
    with pytest.raises(ValueError, match="not the training set of the model"):
        sl1max.constraints(model, X[:-1], y[:-1])
    with pytest.raises(ValueError, match="other classes"):
        sl1max.constraints(model, X, y + 1)
    with pytest.raises(ValueError, match="other classes"):
        sl1max.constraints(model, X, np.eye(3)[y])
    with pytest.raises(ValueError, match="'ham' is not a class of the model, which has 0, 1, 2"):
        sl1max.constraints(model, X, y, label="ham")
    with pytest.raises(ValueError, match="'wrod1', which is not among feature_names"):
        sl1max.constraints(model, X, y, features="wrod1", feature_names=NAMES)
    with pytest.raises(ValueError, match="column numbers go from 0 to 14"):
        sl1max.constraints(model, X, y, features=15)
    with pytest.raises(ValueError, match="must name all 15 features"):
        sl1max.constraints(model, X, y, feature_names=["too", "few"])


@pytest.mark.parametrize(("distribution", "label_mode"), CASES)
def test_top_features(distribution, label_mode):
    X, y = make_data()
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode)
    row = model.weights.toarray()[1]
    for n in (0, 3, 100):
        table = model.top_features(1, n)
        size = min(n, np.count_nonzero(row))
        assert table.columns == ("feature", "weight") and len(table) == size
        np.testing.assert_array_equal(table["weight"], row[table["feature"]])
        np.testing.assert_array_equal(np.abs(table["weight"]), np.sort(np.abs(row))[::-1][:size])
    named = model.top_features(1, 3, feature_names=NAMES)
    assert [f"word{j}" for j in model.top_features(1, 3)["feature"]] == named["feature"].tolist()


def test_top_features_refuses():
    X, y = make_data()
    model = sl1max.fit(X, y)
    with pytest.raises(ValueError, match="is not a class of the model"):
        model.top_features(7)
    with pytest.raises(ValueError, match="must not be negative"):
        model.top_features(1, -1)
    with pytest.raises(ValueError, match="must name all 15 features"):
        model.top_features(1, feature_names=NAMES[1:])


def make_table(n_rows):
    rows = [(f"word{k}", k, k / 7, k % 2 == 0) for k in range(n_rows)]
    return Table(np.array(rows, [("name", "U9"), ("count", int), ("share", float), ("odd", bool)]))


def test_table():
    table = make_table(3)
    assert repr(table).splitlines() == [
        "name   count   share  odd",
        "word0      0       0  yes",
        "word1      1  0.1429  no",
        "word2      2  0.2857  yes",
    ]
    assert list(table)[1] == ("word1", 1, 1 / 7, False)
    assert len(table[1:]) == 2 and len(table[0]) == 1
    assert repr(make_table(40)).splitlines()[-1] == "... 10 more rows"


def test_table_to_pandas():
    pandas = pytest.importorskip("pandas")
    frame = make_table(3).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["name", "count", "share", "odd"]
    assert frame["count"].tolist() == [0, 1, 2]


def test_to_pandas_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas"):
        make_table(1).to_pandas()


# Features that matter


def test_top_features_by_effect_is_weight_times_deviation():
    X, y = make_data(values="real")
    model = sl1max.fit(X, y, beta=0.1)
    table = model.top_features(1, N_FEATURES, by="effect", X=X)
    weights = model.weights[[1]].toarray().ravel()
    effect = weights * X.std(axis=0)
    order = np.argsort(-np.abs(effect), kind="stable")
    order = order[weights[order] != 0]
    assert table.columns == ("feature", "weight", "effect")
    np.testing.assert_array_equal(table["feature"], order)
    np.testing.assert_allclose(table["effect"], effect[order], rtol=1e-12)


def test_effect_of_dense_and_sparse_examples_is_the_same():
    X, y = make_data(values="real")
    X[:, 0] += 1e8  # a large mean
    model = sl1max.fit(X, y, beta=0.1)
    dense, stored = (model.top_features(1, by="effect", X=one) for one in (X, sparse.csc_array(X)))
    np.testing.assert_allclose(dense["effect"], stored["effect"], rtol=1e-7)


@pytest.mark.parametrize("sign", ["positive", "negative"])
def test_top_features_of_one_sign(sign):
    X, y = make_data()
    model = sl1max.fit(X, y, beta=0.1)
    both = model.top_features(1, N_FEATURES)
    table = model.top_features(1, N_FEATURES, sign=sign)
    keep = both["weight"] > 0 if sign == "positive" else both["weight"] < 0
    assert 0 < len(table) < len(both)
    np.testing.assert_array_equal(table.rows, both[keep].rows)


def test_top_features_against_another_class():
    X, y = make_data()
    model = sl1max.fit(X, y, beta=0.1)
    table = model.top_features(0, N_FEATURES, against=2)
    weights = model.weights.toarray()
    difference = weights[0] - weights[2]
    np.testing.assert_allclose(table["weight"], difference[table["feature"]])
    assert len(table) == np.count_nonzero(difference)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "size"}, "by='size' is unknown"),
        ({"sign": "plus"}, "sign='plus' is unknown"),
        ({"by": "effect"}, "needs X"),
        ({"by": "effect", "X": np.ones((2, 3))}, "X has 3 features"),
        ({"against": 7}, "7 is not a class"),
    ],
)
def test_top_features_refuses_options(options, message):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        sl1max.fit(X, y).top_features(0, **options)


# Explanations


@pytest.mark.parametrize("values", ["binary", "real"])
@pytest.mark.parametrize(("distribution", "label_mode"), CASES)
def test_explanation_sums_to_the_score(distribution, label_mode, values):
    X, y = make_data(values=values)
    model = sl1max.fit(X, y, distribution=distribution, label_mode=label_mode, beta=0.1)
    decision = model.decision_function(X)
    for i in range(5):
        for label in (0, 2):
            found = model.explain(X[i], label)
            assert found.score == pytest.approx(decision[i, label])
            assert found.intercept + found.contributions["contribution"].sum() == pytest.approx(found.score)
            versus = model.explain(sparse.csr_array(X[[i]]), label, against=1)
            assert versus.score == pytest.approx(decision[i, label] - decision[i, 1])


def test_explanation_is_of_the_predicted_class_unless_said():
    X, y = make_data()
    model = sl1max.fit(X, y, beta=0.1)
    assert [model.explain(x).label for x in X[:20]] == model.predict(X[:20]).tolist()


def test_explanation_of_two_classes_is_against_the_other():
    X, y = make_data(n_classes=2)
    model = sl1max.fit(X, np.array(["no", "yes"])[y], beta=0.1)
    found = model.explain(X[0], "no", feature_names=NAMES)
    assert (found.label, found.against) == ("no", "yes")
    assert repr(found).startswith("class no against yes: score ")
    assert set(found.contributions["feature"]) <= set(NAMES)


def test_explanation_of_an_example_without_weighted_features():
    X, y = make_data()
    found = sl1max.fit(X, y).explain(np.zeros(N_FEATURES), 0)
    assert found.score == found.intercept
    assert "no feature of the example has a weight" in repr(found)


def test_explanation_refuses_several_examples():
    X, y = make_data()
    with pytest.raises(ValueError, match="one example"):
        sl1max.fit(X, y).explain(X[:2])


def test_explanation_of_an_estimator_has_the_names_of_the_frame():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pandas.DataFrame(X, columns=NAMES)
    classifier = sl1max.MaxentClassifier(beta=0.1).fit(frame, y)
    found = classifier.explain(frame.iloc[[3]], 1)
    assert found.score == pytest.approx(classifier.decision_function(frame)[3, 1])
    assert set(found.contributions["feature"]) <= set(NAMES)
    assert set(classifier.top_features(1, by="effect", X=frame)["feature"]) <= set(NAMES)
