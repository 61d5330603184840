"""Predictions of ONNX graphs in onnxruntime."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sl1max

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
to_onnx = pytest.importorskip("sl1max.onnx").to_onnx

MODELS = [
    (distribution, label_mode)
    for distribution in ("conditional", "joint", "class-conditional")
    for label_mode in ("exclusive", "independent")
]
LABELS = {"text": np.array(["a", "b", "c"]), "numbers": np.array([3, 5, 9]), "floats": np.array([0.0, 1.0, 2.0])}


def make_data(n_classes=3):
    rng = np.random.default_rng(0)
    X = (rng.random((150, 20)) < 0.4).astype(float)
    y = np.where(rng.random(150) < 0.2, rng.integers(0, n_classes, 150), np.minimum(X[:, 1] + X[:, 5], n_classes - 1))
    return X, y.astype(int)


def run(graph, X, dtype=np.float32):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X.astype(dtype)}), strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", ["text", "two classes", "indicator"])
@pytest.mark.parametrize(("distribution", "label_mode"), MODELS)
def test_graph_predicts_the_same_as_the_estimator(distribution, label_mode, target, dtype):
    X, y = make_data(2 if target == "two classes" else 3)
    y = sparse.csr_array(np.eye(3, dtype=int)[y]) if target == "indicator" else LABELS["text"][y]
    classifier = sl1max.MaxentClassifier(distribution=distribution, label_mode=label_mode, beta=0.2).fit(X, y)
    found = run(to_onnx(classifier, dtype=dtype), X, dtype)
    rtol = 1e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(found["probabilities"], classifier.predict_proba(X), rtol=rtol, atol=1e-7)
    expected = classifier.model_.scores(X) + classifier.model_.intercept
    np.testing.assert_allclose(found["scores"], expected, rtol=rtol, atol=1e-5 if dtype == "float32" else 1e-12)
    labels = classifier.predict(X)
    if target == "indicator" and label_mode == "exclusive":
        np.testing.assert_array_equal(found["label"], labels.indices)
    else:
        np.testing.assert_array_equal(found["label"], labels.toarray() if sparse.issparse(labels) else labels)


@pytest.mark.parametrize("kind", ["numbers", "floats"])
def test_graph_keeps_labels(kind):
    X, y = make_data()
    model = sl1max.fit(X, LABELS[kind][y])
    np.testing.assert_array_equal(run(to_onnx(model), X)["label"], model.predict(X))


def test_graph_holds_only_used_features():
    X, y = make_data()
    X = np.hstack([X, np.zeros((150, 50_000))])
    model = sl1max.fit(sparse.csr_array(X), y)
    graph = to_onnx(model)
    assert len(graph.SerializeToString()) < 4000
    np.testing.assert_array_equal(run(graph, X)["label"], model.predict(X))


def test_graph_of_a_model_without_weights():
    X, y = make_data()
    model = sl1max.fit(X, y, beta=1e3)
    np.testing.assert_allclose(run(to_onnx(model), X)["probabilities"][0], model.class_prior, rtol=1e-5)


@pytest.mark.parametrize("zipmap", [True, False])
def test_pipeline_is_converted_by_skl2onnx(zipmap):
    X, y = make_data()
    pipeline = make_pipeline(StandardScaler(), sl1max.MaxentClassifier(beta=0.2)).fit(X, LABELS["text"][y])
    options = {id(pipeline): {"zipmap": zipmap}}
    graph = skl2onnx.to_onnx(pipeline, X[:1].astype(np.float32), options=options)
    label, probabilities = run(graph, X).values()
    np.testing.assert_array_equal(label, pipeline.predict(X))
    if zipmap:
        probabilities = np.array([[row[name] for name in pipeline.classes_] for row in probabilities])
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(X), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("indicator", [True, False])
def test_searches_and_label_sets_are_converted_by_skl2onnx(indicator):
    X, y = make_data()
    y = np.eye(3, dtype=int)[y] if indicator else y
    search = sl1max.MaxentClassifierCV(betas=[0.5], cv=3, label_mode="independent").fit(X, y)
    graph = skl2onnx.to_onnx(search, X[:1].astype(np.float64), options={"zipmap": False})
    label, probabilities = run(graph, X, np.float64).values()
    np.testing.assert_array_equal(label, search.predict(X))
    np.testing.assert_allclose(probabilities, search.predict_proba(X), rtol=1e-10)


def test_text_pipeline_is_converted_by_skl2onnx():
    texts = ["wheat and corn", "corn price", "gold mine", "gold and silver", "wheat crop", "silver price"]
    topics = ["grain", "grain", "metal", "metal", "grain", "metal"]
    pipeline = make_pipeline(
        CountVectorizer(lowercase=False, token_pattern="[a-z]+"), sl1max.MaxentClassifier(beta=0.1)
    )
    pipeline.fit(texts, topics)
    graph = skl2onnx.to_onnx(
        pipeline, initial_types=[("text", skl2onnx.common.data_types.StringTensorType([None]))],
        options={"zipmap": False},
    )  # fmt: skip
    label, probabilities = run(graph, np.array(texts), object).values()
    assert label.tolist() == pipeline.predict(texts).tolist()
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(texts), rtol=1e-4)


def test_conversion_refuses():
    X, y = make_data()
    model = sl1max.fit(X, y)
    with pytest.raises(ValueError, match="dtype='half'"):
        to_onnx(model, dtype="half")
    with pytest.raises(TypeError, match="fitted estimator"):
        to_onnx("model")
    with pytest.raises(ValueError, match="cannot be stored"):
        to_onnx(replace(model, classes=np.array([1j, 2j, 3j])))
