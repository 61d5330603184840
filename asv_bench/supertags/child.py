"""Training of one model in a process of its own, to measure peak memory: settings and results are JSON."""

import json
import resource
import sys
import time
import warnings

import numpy as np

import sl1max

from .data import make_task

MODELS = {
    "class-conditional": ("class-conditional", "exclusive"),
    "joint, independent": ("joint", "independent"),
    "conditional, independent": ("conditional", "independent"),
    "joint, exclusive": ("joint", "exclusive"),
    "conditional, exclusive": ("conditional", "exclusive"),
}
SEPARATE = ("class-conditional", "joint, independent", "conditional, independent")
TOP = 5


def peak_memory():
    """Bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def train(settings):
    """Figures of one model."""
    distribution, label_mode = MODELS[settings["model"]]
    task = make_task(settings["made"], settings["model"] not in SEPARATE, settings["classes"], settings["rows"])
    if np.ndim(task.y) == 2:
        label_mode = "independent"
    figures = {"n_rows": task.X.shape[0], "n_features": task.X.shape[1], "memory_before": peak_memory()}
    start, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = sl1max.fit(
            task.X, task.y, distribution=distribution, label_mode=label_mode, beta=settings["beta"],
            tol=settings["tol"],
            n_jobs=settings["jobs"], verbose=1, checkpoint=settings["checkpoint"],
        )  # fmt: skip
    figures |= {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "memory": peak_memory(),
        "n_classes": model.n_classes,
        "n_weights": int(sum(part.nnz for part in model._parts) if model._parts else model.weights.nnz),
        "n_iter": int(np.sum(model.n_iter)),
        "n_unconverged": int(np.size(model.converged) - np.sum(model.converged)),
        "greatest_gap": float(np.max(model.dual_gap / np.maximum(np.abs(model.objective_zero), 1e-300))),
        "objective": float(np.mean(model.objective)),
        "warnings": sorted({str(warning.message) for warning in caught}),
    }
    return figures | (predict(model, task, settings["jobs"]) if task.X_test is not None else {})


def predict(model, task, n_jobs):
    """Seconds of the prediction of all test examples, and the share whose class is not the first or among the first."""
    figures = {"n_test": task.X_test.shape[0]}
    for k in (1, min(TOP, model.n_classes)):
        start = time.perf_counter()
        labels = model.predict_top_k(task.X_test, k, n_jobs=n_jobs)
        figures[f"top_{k}_seconds"] = time.perf_counter() - start
        figures[f"top_{k}_error"] = float(1 - (labels == task.y_test[:, None]).any(axis=1).mean())
    return figures | {"memory_after_prediction": peak_memory()}


def main():
    settings = json.loads(sys.argv[1])
    print(json.dumps(settings | train(settings)))


if __name__ == "__main__":
    main()
