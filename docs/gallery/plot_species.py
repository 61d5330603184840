"""
Where the sloth lives: a species distribution
=============================================

116 places where the brown-throated sloth, *Bradypus variegatus*, was seen, and 1,000 points of
Latin America, all with 13 climate covariates and the ecoregion: the example of Phillips, Anderson
and Schapire (2006), who introduced Maxent. The model is that of Maxent 3.4.4 at the optimum.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sl1max.plot import plot_jackknife, plot_omission, plot_response, plot_roc, plot_tuning
from sl1max.species import SpeciesModel, evaluate, jackknife, read_swd, response_curve, training_set, tune

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
presences = read_swd(here / "bradypus" / "presence.csv", remove_duplicates=True)
background = read_swd(here / "bradypus" / "background.csv")
X, y = training_set(presences, background)

model = SpeciesModel(categorical_features=["ecoreg"]).fit(X, y)
evaluation = evaluate(model, X, y)
print(f"{len(model.features_)} of {model.n_features_expanded_:,} features have a weight")
print(f"gain {model.gain_:.4f}, at most {model.dual_gap_:.1e} below its maximum; AUC {evaluation.auc:.3f}")

# %%
# The map
# -------
#
# The prediction at the background points. With rasters of the covariates
# :func:`sl1max.species.predict_raster` writes a map of all cells.

suitability = model.predict_suitability(X)
x, height = background.coordinates.T
_, ax = plt.subplots(figsize=(5.4, 5.6), layout="constrained")
points = ax.scatter(x, height, c=suitability[y == 0], s=10, vmin=0, vmax=1)
ax.plot(*presences.coordinates.T, "o", markersize=3, markerfacecolor="white", markeredgecolor="black", label="seen")
ax.figure.colorbar(points, label="suitability (cloglog)", shrink=0.8)
ax.set_aspect("equal")
ax.set_xticks([])
ax.set_yticks([])
_ = ax.legend(loc="lower left")

# %%
# Response curves
# ---------------
#
# The three covariates whose loss costs the most gain: the response with the others at their mean
# over the presences, and in a model of that covariate alone. Dashed beyond the range in training.

table = jackknife(model, X, y)
names = table["covariate"][np.argsort(-table["gain_drop"])[:3]]
_, axes = plt.subplots(1, 3, figsize=(10.5, 2.8), layout="constrained")
for ax, name in zip(axes, names, strict=True):
    for kind in ("marginal", "alone"):
        plot_response(response_curve(model, X, y, str(name), kind=kind), name, label=kind, ax=ax)

# %%
# Which covariates matter
# -----------------------

_ = plot_jackknife(table, whole=model.gain_)

# %%
# Omission and area
# -----------------

_, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
plot_omission(evaluation, ax=axes[0])
_ = plot_roc(evaluation, ax=axes[1])

# %%
# Choosing the settings
# ---------------------
#
# The corrected Akaike criterion of models with several feature classes and penalties; the test AUC
# of a cross-validation is in the same table.

tuning = tune(
    model, X, y, features=["lq", "lqh", "lqph"], beta_multipliers=[0.5, 1, 2, 4], n_replicates=3, random_state=0
)
_, axes = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
plot_tuning(tuning, ax=axes[0])
_ = plot_tuning(tuning, "test_auc", ax=axes[1])
plt.show()
