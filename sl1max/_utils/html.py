"""Self-contained HTML pages: text, tables and figures of matplotlib in one file that needs no network.

Every function returns a piece of HTML as `Html`; plain strings are escaped, pieces of HTML are taken as they are.
"""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from sl1max._utils.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light; --line: #d9dde3; --quiet: #5b6470; --link: #005a9c; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; color: #1b1f24;
  background: #fff; overflow-wrap: break-word; }
header, main, footer { max-width: 1180px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 28px; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 0 0 12px; }
h3 { font-size: 1.05rem; margin: 20px 0 8px; }
p { margin: 0 0 12px; max-width: 75ch; }
a { color: var(--link); }
nav ul { list-style: none; margin: 12px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 18px; }
nav a { display: inline-block; padding: 4px 0; }
section { padding: 28px 0 4px; border-top: 1px solid var(--line); margin-top: 24px; }
.subtitle, figcaption, caption, footer { color: var(--quiet); }
.warning { border-left: 4px solid #d55e00; padding: 8px 12px; background: #fdf3ec; }
.scroll { overflow-x: auto; margin: 0 0 16px; max-width: 100%; }
table { border-collapse: collapse; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 6px; }
th, td { padding: 4px 16px 4px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th.number, td.number { text-align: right; white-space: nowrap; }
thead th { border-bottom: 2px solid #9aa3ad; vertical-align: bottom; }
tbody th { font-weight: normal; }
figure { margin: 0 0 20px; }
figure img { max-width: 100%; height: auto; display: block; }
figcaption { font-size: 0.92rem; margin-top: 4px; max-width: 75ch; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 8px 32px;
  align-items: start; }
.grid > * { min-width: 0; }
.side { display: flex; flex-wrap: wrap; gap: 0 28px; }
footer { padding-top: 24px; padding-bottom: 32px; font-size: 0.85rem; }
@media (max-width: 600px) {
  header, main, footer { padding-left: 16px; padding-right: 16px; }
  h1 { font-size: 1.5rem; }
  th, td { padding-right: 10px; }
}
@media print { nav { display: none; } section { break-inside: avoid; } }
""".strip()


class Html(str):
    """Text in HTML, which is not escaped again."""

    __slots__ = ()


def text(value: Any) -> Html:
    """Escape a value, unless it is `Html`.

    Examples
    --------
    >>> text("a < b")
    'a &lt; b'
    """
    return value if isinstance(value, Html) else Html(escape(str(value)))


def join(parts: Iterable[Any]) -> Html:
    """Join pieces, one per line."""
    return Html("\n".join(map(text, parts)))


def paragraph(*parts: Any, kind: str | None = None) -> Html:
    """A paragraph.

    Parameters
    ----------
    *parts : str or Html
    kind : {"warning", "subtitle"}, optional
    """
    mark = f' class="{kind}"' if kind else ""
    return Html(f"<p{mark}>{''.join(map(text, parts))}</p>")


def heading(title: Any) -> Html:
    """A heading within a section."""
    return Html(f"<h3>{text(title)}</h3>")


def number(value: Any) -> str:
    """A number with four significant digits, integers in full, nan as a dash.

    Examples
    --------
    >>> number(0.123456), number(12345), number(float("nan"))
    ('0.1235', '12,345', '–')
    """
    if value is None or value != value:
        return "–"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def table(columns: Sequence[Any], rows: Iterable[Sequence[Any]], *, caption: Any = None) -> Html:
    """A table that scrolls horizontally if it is wider than the page.

    Parameters
    ----------
    columns : sequence of str
        The head of the columns.
    rows : iterable of sequences
        Numbers are formatted by `number` and right-aligned. The first cell is the header of its row.
    caption : str, optional

    Examples
    --------
    >>> "<td class=\\"number\\">0.25</td>" in table(["covariate", "share"], [("rain", 0.25)])
    True
    """
    rows = [list(row) for row in rows]
    numeric = [bool(rows) and all(_is_number(row[k]) for row in rows) for k in range(len(columns))]
    head = "".join(_cell("th", name, flag, ' scope="col"') for name, flag in zip(columns, numeric, strict=True))
    body = "\n".join(
        "<tr>"
        + "".join(
            _cell("td" if k else "th", value, flag, "" if k else ' scope="row"')
            for k, (value, flag) in enumerate(zip(row, numeric, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    return Html(
        f'<div class="scroll" tabindex="0"><table>{title}\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_)))


def _cell(tag: str, value: Any, numeric: bool, scope: str) -> str:
    mark = ' class="number"' if numeric else ""
    return f"<{tag}{scope}{mark}>{text(number(value) if _is_number(value) else value)}</{tag}>"


def figure(drawing: Any, caption: Any = "", *, alt: str, kind: str = "svg", dpi: int = 150) -> Html:
    """A figure of matplotlib, inside the page. The figure is closed.

    Parameters
    ----------
    drawing : Figure or Axes
    caption : str, optional
    alt : str
        Alternative text of the figure.
    kind : {"svg", "png"}
        Drawings of lines as SVG, images and thousands of points as PNG.
    dpi : int
        Of a PNG.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    whole: Figure = drawing if hasattr(drawing, "savefig") else drawing.figure
    stream = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "sl1max"}):
        whole.savefig(stream, format=kind, dpi=dpi, metadata={"Date": None} if kind == "svg" else None)
    plt.close(whole)
    media = "image/svg+xml" if kind == "svg" else "image/png"
    data = base64.b64encode(stream.getvalue()).decode()
    # Its natural width, so that it is not enlarged on a wide page.
    width = round(whole.get_figwidth() * 96)
    image = f'<img src="data:{media};base64,{data}" alt="{escape(alt)}" width="{width}">'
    return Html(f"<figure>{image}{f'<figcaption>{text(caption)}</figcaption>' if caption else ''}</figure>")


def block(parts: Iterable[Any]) -> Html:
    """Pieces that stay together, as one cell of a `grid`."""
    return Html(f"<div>{join(parts)}</div>")


def side_by_side(parts: Iterable[Any]) -> Html:
    """Narrow pieces side by side, if the page is wide enough."""
    return Html(f'<div class="side">{join(parts)}</div>')


def grid(parts: Iterable[Any]) -> Html:
    """Pieces side by side, if the page is wide enough."""
    return Html(f'<div class="grid">{join(parts)}</div>')


def page(title: str, sections: Sequence[tuple[str, Any]], *, subtitle: Any = None, footer: Any = None) -> Html:
    """A page with links to its sections at the top.

    Parameters
    ----------
    title : str
    sections : sequence of (title, content)
        The content is `Html`, or several pieces of it.
    subtitle, footer : str or Html, optional

    Examples
    --------
    >>> page("Report", [("Model", paragraph("2 classes"))]).count("<section")
    1
    """
    anchors = _anchors([name for name, _ in sections])
    links = "".join(
        f'<li><a href="#{anchor}">{text(name)}</a></li>' for anchor, (name, _) in zip(anchors, sections, strict=True)
    )
    body = "\n".join(
        f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n<h2 id="{anchor}-title">{text(name)}</h2>\n'
        f"{text(content) if isinstance(content, str) else join(content)}\n</section>"
        for anchor, (name, content) in zip(anchors, sections, strict=True)
    )
    below = f"<footer>{text(footer)}</footer>\n" if footer else ""
    return Html(
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{text(title)}</title>\n<link rel="icon" href="data:,">\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n'
        f"<header>\n<h1>{text(title)}</h1>\n{paragraph(subtitle, kind='subtitle') if subtitle else ''}\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n</header>\n<main>\n{body}\n</main>\n'
        f"{below}</body>\n</html>\n"
    )


def _anchors(titles: Iterable[str]) -> list[str]:
    """Identifiers of sections, distinct."""
    found: list[str] = []
    for title in titles:
        stem = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        anchor, n = stem, 2
        while anchor in found:
            anchor, n = f"{stem}-{n}", n + 1
        found.append(anchor)
    return found


def write_page(path: str | os.PathLike[str], content: Html) -> None:
    """Write a page to a file, which holds its previous content until the new one is complete."""
    with atomic_write(path) as stream:
        stream.write(content.encode(errors="backslashreplace"))  # half of a surrogate pair
