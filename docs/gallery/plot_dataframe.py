"""
Data frames with numbers and categories
=======================================

A data frame with mixed columns becomes a matrix by one-hot encoding and binning. The L1 penalty then
selects the categories and intervals that matter. Column names are kept, so the model can be read.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from sl1max import MaxentClassifier

# %%
# Synthetic customers
# -------------------
#
# Whether a customer renews a contract depends on the plan, on the tariff, and on age in a
# non-linear way. The city and the number of calls have no influence.

rng = np.random.default_rng(0)
n = 3000
frame = pd.DataFrame(
    {
        "plan": rng.choice(["basic", "plus", "family"], n, p=[0.5, 0.3, 0.2]),
        "tariff": rng.choice(["monthly", "yearly"], n),
        "city": rng.choice([f"city {k}" for k in range(30)], n),
        "age": rng.uniform(18, 80, n),
        "calls": rng.poisson(20, n),
    }
)
score = (
    0.8 * (frame["plan"] == "family") - 0.8 * (frame["tariff"] == "monthly") + 1.2 * frame["age"].between(35, 55) - 0.3
)
renewed = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "renewed", "left")

# %%
# A pipeline on the frame
# -----------------------

encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["plan", "tariff", "city"]),
    (KBinsDiscretizer(n_bins=10, quantile_method="averaged_inverted_cdf"), ["age", "calls"]),
    verbose_feature_names_out=False,
)
model = make_pipeline(encode, MaxentClassifier(beta=1.5))
train, test, y_train, y_test = train_test_split(frame, renewed, random_state=0)
model.fit(train, y_train)
majority = max(np.mean(y_test == label) for label in model.classes_)
print(f"accuracy: {model.score(test, y_test):.3f}, of the majority class: {majority:.3f}")

# %%
# The nonzero weights
# -------------------
#
# The weights of most cities and of most intervals of calls are zero. The intervals of age describe the
# non-linear effect. With two exclusive classes only the difference of their weights matters, hence ``against``.

names = encode.get_feature_names_out()
top = model[-1].top_features("renewed", 12, against="left", feature_names=names)
print(len(names), "features,", len(top), "with a nonzero weight")

order = np.argsort(top["weight"])
colors = np.where(top["weight"][order] > 0, "#0072B2", "#D55E00")
plt.barh(top["feature"][order].astype(str), top["weight"][order], color=colors)
plt.xlabel("weight of 'renewed' against 'left'")
plt.grid(axis="y", visible=False)
plt.show()
