"""What sl1max learns from WebKB: the words of each class, the path of the weights, and the paper's comparison.

Usage: demo.py [FOLDER], where the figure and the report go (build/demo).
"""

import sys
import time
from pathlib import Path

import numpy as np

import sl1max
from sl1max.datasets import fetch_webkb
from sl1max.metrics import calibration_error, top_class_error
from sl1max.plot import plot_path
from sl1max.reproduction._reproduce import BETA, N_ROUNDS, PAPER_ERRORS, SVM_C, format_text

N_WORDS = 7
N_BETAS = 30
SHOWN = "student"  # the class of the figure
# Each model in words, by its name in the paper, and what `fit` is called with.
MODELS = {
    "Q1": ("joint p(x, c)", {"distribution": "joint", "label_mode": "exclusive"}),
    "Q2": ("class-conditional p(x|c)", {"distribution": "class-conditional"}),
    "Q3": ("conditional p(c|x)", {"distribution": "conditional", "label_mode": "exclusive"}),
    "Q1(lambda^c)": ("joint, each class on its own", {"distribution": "joint", "label_mode": "independent"}),
    "Q3(lambda^c)": (
        "conditional, each class on its own",
        {"distribution": "conditional", "label_mode": "independent"},
    ),
}


def print_words(data, model):
    """The words of each class: those that raise its probability, by weight times standard deviation."""
    n_words = model.n_classes * model.n_features
    print(f"{data.X_train.shape[0]:,} web pages of {model.n_classes} classes, {model.n_features:,} words.")
    print(f"The model keeps {model.weights.nnz:,} of {n_words:,} weights, and is proven optimal to {gap(model):.0e}.")
    print("\nWhat tells a page of each class (words by their effect, with their weights):\n")
    for c, name in enumerate(data.class_names):
        options = {"by": "effect", "sign": "positive", "X": data.X_train, "feature_names": data.feature_names}
        top = model.top_features(model.classes[c], N_WORDS, **options)
        words = zip(top["feature"], top["weight"], strict=True)
        print(f"  {name:<8}  " + "  ".join(f"{word} {weight:+.2f}" for word, weight in words))


def gap(model):
    """The largest duality gap of a class, relative to the loss without weights."""
    return np.max(np.asarray(model.dual_gap) / model.objective_zero)


def draw_path(data, folder):
    """Draw the weights of a class as beta falls."""
    labels, options = np.array(data.class_names)[data.y_train], {"label_mode": "independent"}
    largest = sl1max.zero_beta(data.X_train, labels, **options)
    start = time.perf_counter()
    found = sl1max.path(data.X_train, labels, betas=np.geomspace(largest, BETA, N_BETAS), **options)
    seconds = time.perf_counter() - start
    axes = plot_path(found, SHOWN, n=10, feature_names=data.feature_names)
    axes.set_title(f"Words that tell a {SHOWN} page, as the penalty falls", loc="left")
    file = folder / "path.svg"
    axes.figure.savefig(file, bbox_inches="tight")
    print(f"\n{N_BETAS} models, one for each strength of the penalty, in {seconds:.1f} s: {file}")


def write_report(data, folder):
    """A report on a quarter of the pages, by a model of the others."""
    X_train, y_train, X_test, y_test = next(data.splits())
    names = np.array(data.class_names)
    model = sl1max.fit(X_train, names[y_train], label_mode="independent")
    file = folder / "report.html"
    title = "Web pages of universities"
    sl1max.report(model, file, X_test, names[y_test], feature_names=data.feature_names, title=title)
    print(f"A report on a model and its mistakes, one HTML page: {file}")


def learners():
    """Rows of the table: the name, the name in the paper, and a function from a training set to a model."""
    for name, (words, options) in MODELS.items():
        yield words, name, lambda X, y, options=options: sl1max.fit(X, y, beta=BETA, **options)
    yield "AdaBoost, logistic loss", "AdaBoost", lambda X, y: train("adaboost", X, y, n_estimators=N_ROUNDS["webkb"])
    yield "linear SVM", "Linear SVM", lambda X, y: train("svm", X, y, C=SVM_C, dual=True, random_state=0)


def train(learner, X, y, **options):
    return sl1max.get_learner(learner, **options).fit(X, y).model_


def compare(data):
    """The rows of the table; each quarter of the pages is tested by a model of the others."""
    splits = list(data.splits())
    rows = []
    for words, name, fit in learners():
        seconds, sizes, errors, log_probas, labels = 0.0, [], [], [], []
        for X_train, y_train, X_test, y_test in splits:
            start = time.process_time()
            model = fit(X_train, y_train)
            seconds += time.process_time() - start
            parts = [model.weights] if model._parts is None else model._parts
            sizes.append(sum(part.nnz for part in parts))
            scores = model.decision_function(X_test)
            errors.append(len(y_test) * top_class_error(y_test, scores, labels=model.classes))
            log_probas.append(model.predict_log_proba(X_test))
            labels.append(y_test)
        y, log_proba = np.concatenate(labels), np.concatenate(log_probas)
        quality = ["-", "-"]
        if name != "Linear SVM":  # whose scores are margins
            loss = -log_proba[np.arange(len(y)), y].mean()
            quality = [f"{loss:.3f}", f"{100 * calibration_error(y, np.exp(log_proba), labels=np.unique(y)):.1f} %"]
        weights = "all" if name == "Linear SVM" else f"{np.mean(sizes):,.0f}"
        error, paper = 100 * sum(errors) / len(y), PAPER_ERRORS[name]["webkb"][0]
        rows.append([words, f"{error:.2f} %", f"{paper:.2f} %", weights, *quality, f"{seconds / len(splits):.2f} s"])
    return rows


def print_table(data):
    header = ["model", "error", "in the paper", "weights", "log loss", "calibration error", "training"]
    print("\nTable 3 of the paper: each quarter of the pages is tested by a model of the others.\n")
    print(format_text(header, compare(data)))
    print("\nError: pages whose most probable class is wrong. Log loss and calibration error: how much the")
    print("probabilities are worth; smaller is better. AdaBoost and the SVM come without a proof of optimality.")


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo")
    folder.mkdir(parents=True, exist_ok=True)
    data = fetch_webkb()
    model = sl1max.fit(data.X_train, data.y_train, distribution="conditional", label_mode="independent")
    print_words(data, model)
    draw_path(data, folder)
    write_report(data, folder)
    print_table(data)


if __name__ == "__main__":
    main()
