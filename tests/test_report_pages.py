"""The HTML report in a browser, on a wide and on a narrow screen."""

import browser
import numpy as np
import pytest

import sl1max
from sl1max.datasets import fetch_webkb

pytest.importorskip("matplotlib").use("agg")
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports on pages of text, on label sets, on two classes with a path, and without examples."""
    browser.need_browser()
    folder = tmp_path_factory.mktemp("pages")
    data = fetch_webkb()
    X, y, X_test, y_test = next(data.splits())
    names = np.array(data.class_names)
    words = {"feature_names": data.feature_names}
    made = {
        "words": (sl1max.fit(X, names[y], label_mode="independent"), (X_test, names[y_test]), words),
        "sets": (sl1max.fit(X, np.eye(4)[y]), (X_test, np.eye(4)[y_test]), words),
        "alone": (sl1max.fit(X, names[y], distribution="joint"), (), {"title": "A model " + "with a long title " * 5}),
        "long": (
            sl1max.fit(X, y > 1),
            (X_test, y_test > 1),
            {"feature_names": [f"{'word' * 20}{j}" for j in range(X.shape[1])]},
        ),
    }
    found = sl1max.path(X, y == 1, betas=6)
    made["path"] = (found.models[-1], (X_test, y_test == 1), words | {"path_result": found})
    for name, (model, examples, options) in made.items():
        sl1max.report(model, folder / f"{name}.html", *examples, **options)
    return folder


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["words", "sets", "alone", "long", "path"])
def test_report_fits_the_screen(pages, name, width):
    found = browser.measure(pages / f"{name}.html", width)
    assert found["width"] == width
    assert found["page"] <= width and found["wide"] == []
    assert found["empty"] == [] and found["loaded"] == []
    assert all(natural > 0 and 100 < shown <= width for natural, shown in found["images"])
    assert len(found["images"]) >= (0 if name == "alone" else 2)


def test_measures_notice_what_does_not_fit(tmp_path):
    browser.need_browser()
    page = tmp_path / "page.html"
    page.write_text('<body><p></p><div style="width:900px">x</div><img src="none.png"></body>')
    found = browser.measure(page, 390)
    assert found["page"] > 390 and found["wide"] == ["DIV."] and found["empty"] and found["images"][0][0] == 0
