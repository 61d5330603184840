"""Summaries in notebooks."""

import re

import numpy as np
import pytest

import sl1max
from sl1max.model._explain import make_table


def make_data():
    rng = np.random.default_rng(0)
    X = (rng.random((80, 50)) < 0.3).astype(float)
    return X, rng.integers(0, 3, 80)


def test_html_of_a_model():
    X, y = make_data()
    model = sl1max.fit(X, np.array(["a<b", "c", "d"])[y], beta=0.1)
    page = model._repr_html_()
    assert "multinomial logistic regression" in page and f"{model.weights.nnz} of 150" in page
    with pytest.warns(sl1max.ConvergenceWarning):
        assert "not converged" in sl1max.fit(X, y, beta=0.01, max_iter=1)._repr_html_()
    assert "an array" in sl1max.fit(X, y, beta=np.full(50, 0.5))._repr_html_()


def test_html_of_a_table_is_cut_and_escaped():
    table = make_table(feature=[f"<{j}>" for j in range(40)], weight=np.arange(40.0))
    page = table._repr_html_()
    assert page.count("<tr>") == 31 and "the first 30 of 40 rows" in page
    assert "&lt;29&gt;" in page and not re.search(r"<\d+>", page)
    assert "caption" not in table[:3]._repr_html_()


def test_html_of_an_explanation():
    X, y = make_data()
    found = sl1max.fit(X, y, beta=0.1).explain(X[0], 1)
    assert "<strong>class 1</strong>: score" in found._repr_html_()


def test_html_of_a_path():
    X, y = make_data()
    result = sl1max.path(X, y, betas=5)
    assert result._repr_html_().count("<tr>") == 6
    assert repr(result).startswith("<sl1max.PathResult: 5 models, beta from ")
