"""The HTML report of a species."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from species_data import make_species

from sl1max.species import SpeciesModel, replicate, tune, write_report

pytest.importorskip("matplotlib").use("agg")


@pytest.fixture(scope="module")
def fitted():
    background, presences = make_species(n_background=120, n_presences=24)
    X = np.concatenate([background, presences])
    y = np.arange(len(X)) >= len(background)
    return SpeciesModel("lq", categorical_features=[3]).fit(X, y), X, y


def sections_of(page):
    return re.findall(r"<h2[^>]*>([^<]*)</h2>", page)


def test_report_has_every_section_and_loads_nothing(fitted, tmp_path):
    model, X, y = fitted
    path = tmp_path / "fir.html"
    options = dict(n_replicates=2, random_state=0)
    write_report(
        model, path, X, y, species="fir & oak", test_presences=X[y][:9],
        replicates=replicate(model, X, y, **options),
        tuning=tune(model, X, y, features=["l", "lq"], beta_multipliers=[1, 2], **options),
    )  # fmt: skip
    page = path.read_text()
    assert sections_of(page) == [
        "Summary", "Response curves", "Importance of the covariates", "Omission and area", "Thresholds", "Replicates",
        "Settings compared", "Features",
    ]  # fmt: skip
    assert "fir &amp; oak" in page and "fir & oak" not in page
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page) and "<script" not in page and "@import" not in page
    assert page.count("data:image/svg") == 4 + 4 + 2 + 2  # responses, jackknife, omission and ROC, tuning
    assert f"{len(model.features_)} of {model.n_features_expanded_}" in page
    assert page.count(" omission") > 2 and "minimum training presence" in page


def test_report_without_jackknife_trains_nothing_for_it(fitted, tmp_path):
    model, X, y = fitted
    write_report(model, tmp_path / "fir.html", X, y, with_jackknife=False)
    page = (tmp_path / "fir.html").read_text()
    assert "Jackknife" not in page and "gain without it" not in page


def test_report_of_few_presences_warns(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), np.arange(60) >= 54
    write_report(SpeciesModel().fit(X, y), tmp_path / "rare.html", X, y)
    assert "fewer than 15 presences" in (tmp_path / "rare.html").read_text()


def test_report_shows_a_map(fitted, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    model, X, y = fitted
    profile = dict(height=20, width=30, count=1, dtype="float32", nodata=-9999, transform=rasterio.Affine.identity())
    with rasterio.open(tmp_path / "map.tif", "w", **profile) as raster:
        raster.write(np.full((20, 30), 0.5, np.float32), 1)
    write_report(
        model, tmp_path / "fir.html", X, y, with_jackknife=False, map_path=tmp_path / "map.tif", coordinates=[[3, 4]]
    )
    page = (tmp_path / "fir.html").read_text()
    assert sections_of(page)[1] == "Map" and page.count("data:image/png") == 1


@pytest.mark.full
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_report_fits_the_width_of_a_screen(fitted, tmp_path, width):
    """No part is wider than the page, whatever the width; tables scroll on their own."""
    model, X, y = fitted
    path = tmp_path / "fir.html"
    write_report(model, path, X, y)
    # A frame has the width that is asked for; a window of the browser is never narrower than 500 pixels.
    script = (
        "const w = document.getElementById('f').contentWindow, d = w.document;"
        "const wide = [...d.querySelectorAll('section, figure, img, h1, h2, p')]"
        ".filter(e => e.getBoundingClientRect().right > d.documentElement.clientWidth + 1).length;"
        "const images = [...d.images], broken = images.filter(e => !e.naturalWidth).length;"
        "document.title = [d.documentElement.scrollWidth, d.documentElement.clientWidth, wide, images.length, broken]"
        ".join(' ');"
    )
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<body style="margin:0"><iframe id="f" src="fir.html" width="{width}" height="900" style="border:0"></iframe>'
        f"<script>onload = () => {{ {script} }}</script>"
    )
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom",
         "--virtual-time-budget=20000", f"--window-size={width + 100},1000", frame.as_uri()],
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    scroll, client, n_wide, n_images, n_broken = map(int, re.search(r"<title>([\d ]+)</title>", done.stdout)[1].split())
    assert scroll <= client and client >= width - 20
    assert n_wide == 0 and n_broken == 0 and n_images == 4 + 2 + 2
