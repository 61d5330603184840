"""Measures of pages in Chromium, without a screen. Tests that use it are of the full level."""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

COMMAND = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
# What is wider than the page, and what is empty; elements that scroll on their own may hold wider ones.
MEASURE = """
const wide = [], empty = [];
for (const e of document.querySelectorAll("body *")) {
  if (!e.closest(".scroll") || e.classList.contains("scroll")) {
    if (e.getBoundingClientRect().right > innerWidth + 1) wide.push(e.tagName + "." + e.className);
  }
}
for (const e of document.querySelectorAll("section, td, th, figcaption, h2, h3, p")) {
  if (e.getBoundingClientRect().height < 5) empty.push(e.tagName + " " + e.textContent);
}
const images = [...document.images].map(i => [i.naturalWidth, i.getBoundingClientRect().width]);
document.title = "MEASURED" + JSON.stringify({
  width: innerWidth, page: document.documentElement.scrollWidth, wide, empty, images,
  loaded: performance.getEntriesByType("resource").map(r => r.name).filter(n => !n.startsWith("data:"))
});
"""


def need_browser():
    """Skip a test where there is no Chromium."""
    if COMMAND is None:
        pytest.skip("there is no chromium on this machine: pages are not looked at")


def run(page, *options):
    """What Chromium prints for a page."""
    with tempfile.TemporaryDirectory() as profile:
        call = [COMMAND, *FLAGS, f"--user-data-dir={profile}", *options, Path(page).resolve().as_uri()]
        return subprocess.run(call, check=True, capture_output=True, text=True, timeout=300).stdout


def measure(page, width):
    """Width of the page and of its images, elements that are wider than it or empty, and what it loads."""
    page = Path(page)
    frame = page.with_name(f"frame{width}.html")
    probe = page.with_name(f"probe{width}.html")
    script = f"addEventListener('load', () => {{{MEASURE}\nparent.postMessage(document.title, '*')}})"
    probe.write_text(page.read_text().replace("</body>", f"<script>{script}</script></body>"))
    # A frame has any width; a window without a screen is never narrower than 500 pixels.
    show = "addEventListener('message', m => document.querySelector('pre').textContent = m.data)"
    frame.write_text(
        f'<body style="margin:0"><iframe src="{probe.name}" style="width:{width}px;height:4000px;border:0"></iframe>'
        f"<pre></pre><script>{show}</script></body>"
    )
    found = run(frame, "--allow-file-access-from-files", "--virtual-time-budget=10000", "--dump-dom")
    text = re.search(r"MEASURED(.*?)</pre>", found, re.DOTALL)[1]
    return json.loads(text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
