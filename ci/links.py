"""Check the links of a built site without network access.

Every link to a page, a file or an anchor must have a target in the site. Links with a scheme (https:, mailto:) are
counted, not followed. Scripts, styles and images that a page loads must not have a scheme, so that the site can be read
offline.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("source", "src")}
NOT_LOADED = {"canonical", "next", "prev", "search", "index", "author", "license"}  # rel of a <link>


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.places.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.append(attributes[name])
                if (tag, name) in LOADED and attributes.get("rel") not in NOT_LOADED:
                    self.loaded.append(attributes[name])


def check(folder):
    """(complaints, number of links within the site, number of links out of it)."""
    folder = Path(folder).resolve()
    files = (path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts)  # templates of the theme
    pages = {path: Page(path) for path in files}
    complaints, n_within, n_out = [], 0, 0
    for path, page in pages.items():
        name = path.relative_to(folder)
        complaints += [f"{name}: loads {link} from the network" for link in page.loaded if urlsplit(link).netloc]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                n_out += 1
                continue
            n_within += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                complaints.append(f"{name}: {link} has no target")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                complaints.append(f"{name}: {link} names a missing anchor")
    return complaints, n_within, n_out


def main():
    complaints, n_within, n_out = check(sys.argv[1])
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{n_within} links within the site checked, {n_out} out of it not followed, {len(complaints)} wrong")
    sys.exit(bool(complaints) or not n_within)


if __name__ == "__main__":
    main()
