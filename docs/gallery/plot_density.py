"""
A density over a background
===========================

Shops stand in two towns, most of them in the larger one. Some of them sold a product. Where does it
sell well? scikit-learn's ``KernelDensity`` of the sales shows where shops are. The density of
maximum entropy, :class:`sl1max.MaxentDensity`, is relative to the shops: its log is the preference.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KernelDensity

import sl1max

rng = np.random.default_rng(0)
large = rng.normal([-2, 0], 0.9, (4000, 2))
small = rng.normal([2, 0], 0.9, (1000, 2))
shops = np.concatenate([large, small])
preference = np.where(shops[:, 0] > 0, 1.2, 0.0) + shops[:, 1]  # on a scale of logs
sold = rng.choice(len(shops), 400, replace=False, p=np.exp(preference) / np.exp(preference).sum())

maxent = sl1max.MaxentDensity(shops).fit(shops[sold])
kernel = KernelDensity(bandwidth=0.4).fit(shops[sold])
for name, model in (("maximum entropy", maxent), ("kernels", kernel)):
    agreement = np.corrcoef(model.score_samples(shops), preference)[0, 1]
    print(f"{name}: correlation with the preference {agreement:.2f}")

# %%
# The preference rises upwards and is greater on the right. The kernels show the larger town.

axes_values = np.linspace(-4.5, 4.5, 90), np.linspace(-3, 3, 60)
cells = np.column_stack([grid.ravel() for grid in np.meshgrid(*axes_values)])
_, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, (("maximum entropy", maxent), ("kernels", kernel)), strict=True):
    ax.imshow(model.score_samples(cells).reshape(60, 90), extent=(-4.5, 4.5, -3, 3), origin="lower")
    ax.plot(*shops[sold].T, ".", color="white", markersize=2)
    ax.set_title(name)
plt.show()
