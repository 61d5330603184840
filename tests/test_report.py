"""The HTML report of a model."""

import re

import numpy as np
import pytest
from scipy import sparse

import sl1max
from sl1max._report import Evaluation
from sl1max.metrics import calibration_error

pytest.importorskip("matplotlib").use("agg")

NAMES = [f"word<{j}>" for j in range(12)]
LABELS = np.array(["a<b", "c&d", "e"])


def make_data(seed=0, n_samples=120, n_classes=3):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_samples, 12)) < 0.3).astype(float)
    y = np.where(rng.random(n_samples) < 0.2, rng.integers(0, n_classes, n_samples), X[:, :n_classes].argmax(axis=1))
    return X, y


def write(tmp_path, model, *args, **options):
    path = tmp_path / "report.html"
    sl1max.report(model, path, *args, **options)
    return path.read_text()


def sections_of(page):
    return re.findall(r"<h2[^>]*>([^<]*)</h2>", page)


def test_report_of_a_labelled_test_set_has_every_section(tmp_path):
    X, y = make_data()
    path_result = sl1max.path(X, LABELS[y], betas=4)
    page = write(
        tmp_path, path_result.models[-1], sparse.csr_array(X), LABELS[y], feature_names=NAMES, path_result=path_result
    )
    wanted = ["Summary", "Certificate", "Classes", "Features", "Confusion", "Confidence", "Confident mistakes", "Path"]
    assert sections_of(page) == wanted
    assert page.count("data:image/") == 2 + 3  # calibration, reject curve, a path for each class
    assert "a&lt;b" in page and "word&lt;0&gt;" in page and "a<b" not in page


def test_report_loads_nothing_from_the_network(tmp_path):
    X, y = make_data()
    page = write(tmp_path, sl1max.fit(X, y), X, y)
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page)
    assert "<script" not in page and "@import" not in page


def test_report_without_examples_has_no_measures(tmp_path):
    X, y = make_data()
    assert sections_of(write(tmp_path, sl1max.fit(X, y))) == ["Summary", "Certificate", "Classes", "Features"]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_report_of_label_sets_gives_precision_and_recall(tmp_path, as_sparse):
    X, y = make_data()
    Y = np.eye(3, dtype=int)[y]
    Y[:10, 0] = 1
    model = sl1max.fit(X, Y, beta=0.1)
    tested = Evaluation(model, X, sparse.csr_array(Y) if as_sparse else Y)
    measures = dict(tested.measures())
    predicted = tested.predicted.toarray()
    assert measures["Precision (micro)"] == pytest.approx((predicted & (Y > 0)).sum() / predicted.sum())
    assert measures["Recall (micro)"] == pytest.approx((predicted & (Y > 0)).sum() / Y.sum())
    assert "Confident mistakes" not in sections_of(write(tmp_path, model, X, Y))


def test_measures_of_a_label_vector():
    X, y = make_data()
    model = sl1max.fit(X, LABELS[y], beta=0.1)
    tested = Evaluation(model, X, LABELS[y])
    proba = np.exp(model.predict_log_proba(X))
    measures = dict(tested.measures())
    assert measures["Error, share of wrong top classes"] == pytest.approx(np.mean(model.predict(X) != LABELS[y]))
    expected = -np.log(proba[np.arange(len(y)), y]).mean()
    assert measures["Log loss, nats for each example"] == pytest.approx(expected)
    assert measures["Calibration error"] == pytest.approx(calibration_error(y, proba))


def test_report_of_an_unseen_label(tmp_path):
    X, y = make_data()
    labels = LABELS[y].astype(object)
    labels[0] = "new"
    page = write(tmp_path, sl1max.fit(X, LABELS[y]), X, labels)
    assert "Confident mistakes" in sections_of(page)


def test_report_warns_of_a_fit_that_did_not_converge(tmp_path):
    X, y = make_data()
    with pytest.warns(sl1max.ConvergenceWarning):
        model = sl1max.fit(X, y, beta=0.01, max_iter=1)
    assert 'class="warning"' in write(tmp_path, model)


def test_report_of_many_classes_lists_the_most_frequent(tmp_path):
    rng = np.random.default_rng(0)
    X, y = (rng.random((400, 20)) < 0.3).astype(float), np.arange(400) % 130
    model = sl1max.fit(X, y, distribution="class-conditional", label_mode="exclusive")
    page = write(tmp_path, model, X, y)
    assert "30 more are left out" in page
    assert "The most frequent confusions." in page


def test_report_of_an_estimator_uses_its_feature_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pandas.DataFrame(X, columns=NAMES)
    page = write(tmp_path, sl1max.MaxentClassifier(beta=0.1).fit(frame, y), frame, y)
    assert "word&lt;0&gt;" in page


def test_report_of_a_linear_svm_has_no_certificate_figures(tmp_path):
    X, y = make_data()
    assert "no bound" in write(tmp_path, sl1max.LinearSVMClassifier().fit(X, y))


def test_report_refuses_other_objects(tmp_path):
    with pytest.raises(TypeError, match="fitted estimator"):
        sl1max.report("model", tmp_path / "report.html")
    X, y = make_data()
    with pytest.raises(ValueError, match="y needs X"):
        sl1max.report(sl1max.fit(X, y), tmp_path / "report.html", y=y)
