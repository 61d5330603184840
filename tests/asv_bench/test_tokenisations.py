"""The tokenisations of Reuters-21578 that are compared; the one that was chosen is that of the data set."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sl1max.datasets import _reuters

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "asv_bench"))

tokenisations = pytest.importorskip("tokenisations")
STORY = _reuters.Story(
    1, "TRAIN", frozenset(), "profits up 5", "oslo - ", "profits of 1.5 mln\nwere rising.\n    other profits fell"
)


@pytest.mark.parametrize(("name", "chosen"), [("stems (unigram)", "unigram"), ("first paragraph (zones)", "zones")])
def test_those_of_the_data_set(name, chosen):
    ((min_stories, options),) = (how for key, how in tokenisations.TOKENISATIONS.items() if key.endswith(name))
    how = _reuters.TOKENISATIONS[chosen]
    found = {feature.removesuffix("@1") for feature in tokenisations.features(STORY, **options)}
    assert (found, min_stories) == (set(how.features(STORY)), how.min_stories)


def test_features():
    found = tokenisations.features(STORY, digits="#", occurrences=2, window=2, opening=2)
    assert {"profit@1", "profit@2", "#@1", "up_#", "profit_#", "opening:profit", "opening:of"} < set(found)
    assert not {"profit@3", "profit_oslo", "opening:#"} & set(found)
    assert "1.5@1" in tokenisations.features(STORY, pattern=tokenisations.INNER_DOTS, stems=False)


def test_cross_validation():
    rng = np.random.default_rng(0)
    Y = sp.csr_array(np.eye(3)[rng.integers(0, 3, 80)])
    informative = sp.hstack([Y, sp.csr_array(rng.integers(0, 2, (80, 2)).astype(float))], format="csr")
    wrong, f_measure = tokenisations.cross_validate(sp.csr_array(informative), Y, 0, distribution="conditional")
    assert wrong.sum() == 0 and f_measure == 1
    wrong, f_measure = tokenisations.cross_validate(sp.csr_array(informative)[:, 3:], Y, 0, distribution="conditional")
    assert wrong.mean() > 0.3 and f_measure < 0.8
