"""A script of a user, for the type checker; it is never run. tests/test_typing.py puts typing errors into it."""

import numpy as np
from scipy import sparse

import sl1max

X = sparse.csr_array(np.eye(4))
y = np.array(["ham", "spam", "ham", "spam"])

model = sl1max.fit(X, y, distribution="joint", label_mode="exclusive", beta_rule="deviation", solver="newton", beta=0.5)
labels = model.predict(X)
probabilities: np.ndarray = model.predict_proba(X)
top, values = model.predict_top_k(X, 2, return_decision=True)
sparser = sl1max.fit(X, y, C=2.0, multilabel_weighting="equal", on_interrupt="return", n_jobs=-1)
model.save("model.sl1max")
again: sl1max.Model = sl1max.load("model.sl1max")

result: sl1max.PathResult = sl1max.path(X, y, betas=5, distribution="conditional", tol=1e-3)
beta: float = sl1max.zero_beta(X, y, beta_rule="count")
moments: sl1max.MomentModel = sl1max.fit_moments([0.2, 0.3], 0.1, np.eye(2))
table: sl1max.Table = sl1max.constraints(model, X, y)
larger: sl1max.Model = sl1max.with_class(model, "eggs", X, y == "ham")

solver = sl1max.Solver(sl1max.Problem(X, y, label_mode="independent"), solver="sequential")
while solver.step(10) == "running":
    solver.set_beta(0.25)


def report(progress: sl1max.FitProgress) -> bool:
    return progress.n_iter > 100


classifier = sl1max.MaxentClassifier(distribution="joint", label_mode="auto", C=2.0, callback=report)
classifier.fit(X, y).predict(X)
search = sl1max.MaxentClassifierCV(betas=5, distribution=["joint", "conditional"], selection="one_standard_error")
boosted = sl1max.AdaBoostClassifier(n_estimators=100, loss="logistic")
machine = sl1max.LinearSVMClassifier(C=1.0)
best = sl1max.get_learner("auto", cv=3)

try:
    sl1max.fit(X, y, checkpoint="fit.ckpt")
except sl1max.FitError as error:
    partial = error.model
except sl1max.CheckpointError:
    pass
