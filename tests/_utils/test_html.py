"""Pages of HTML: nothing unescaped, nothing from elsewhere, well-formed."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from sl1max._utils import html

VOID = {"meta", "link", "img"}


class Balance(HTMLParser):
    """Collects elements that are closed in the wrong order, and all texts."""

    def __init__(self):
        super().__init__()
        self.open, self.errors, self.texts, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def parse(text):
    parser = Balance()
    parser.feed(text)
    parser.close()
    assert not parser.open and not parser.errors
    return parser


def make_page():
    content = [
        html.paragraph("rain <b> & sun", html.Html(" <em>once</em>"), kind="warning"),
        html.heading("Covariates"),
        html.table(["name", "value"], [("<script>", 1.5), ("plain", np.float64("nan"))], caption="A & B"),
    ]
    return html.page("Species <1>", [("Model", content), ("Model", html.grid(content))], subtitle="x < y", footer="end")


def test_page_is_balanced_and_escaped():
    page = make_page()
    parser = parse(page)
    texts = "".join(parser.texts)
    assert "rain <b> & sun once" in texts and "Species <1>" in texts and "x < y" in texts
    assert "<script>" not in page and "<em>once</em>" in page
    assert len(parser.ids) == len(set(parser.ids)) and {"model", "model-2"} <= set(parser.ids)


def test_page_links_to_every_section():
    page = make_page()
    ids = set(parse(page).ids)
    links = re.findall(r'href="#([^"]+)"', page)
    assert len(links) == 2 and set(links) <= ids


def test_figure_is_inside_the_page_and_closed():
    plt = pytest.importorskip("matplotlib.pyplot")
    for kind in ("svg", "png"):
        drawing, ax = plt.subplots()
        ax.plot([0, 1])
        number = drawing.number
        piece = html.figure(ax, "a <line>", alt='a "line"', kind=kind)
        assert not plt.fignum_exists(number)
        assert f"data:image/{kind}" in piece and "a &lt;line&gt;" in piece and "a &quot;line&quot;" in piece
        parse(piece)
    assert not re.search(r'(src|href)="https?:', piece)


def test_same_figure_gives_the_same_text():
    plt = pytest.importorskip("matplotlib.pyplot")
    first, second = (html.figure(plt.subplots()[1], alt="empty") for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "value, shown",
    [
        (3, "3"),
        (1234567, "1,234,567"),
        (0.5, "0.5"),
        (0.0, "0"),
        (1.23456, "1.235"),
        (99.123, "99.12"),
        (12345.6, "12,346"),
        (1e-9, "1e-09"),
        (-0.25, "-0.25"),
        (None, "–"),
        (float("nan"), "–"),
        (np.float32(2), "2"),
    ],
)
def test_number_format(value, shown):
    assert html.number(value) == shown


def test_page_is_written_whole(tmp_path):
    path = tmp_path / "page.html"
    html.write_page(path, make_page())
    assert path.read_text(encoding="utf-8") == make_page()
