"""The WebKB column of the paper's tables, its figures beside ours, and what one of the models has learnt."""

import sys

import numpy as np

import sl1max
from sl1max.datasets import fetch_webkb
from sl1max.reproduction import _reproduce as reproduce

N_TOP = 6


def print_tables(data):
    progress = reproduce.Progress() if sys.stderr.isatty() else None
    settings = reproduce.Settings(callback=progress.watch if progress else None)
    column = reproduce.run("webkb", data=data, settings=settings, progress=progress)
    print(reproduce.report([column]), flush=True)


def print_top_features(data):
    model = sl1max.fit(data.X_train, data.y_train, distribution="conditional", label_mode="independent")
    share = data.X_train.mean(axis=0)
    spread = np.sqrt(share * (1 - share))
    print(f"\nTrained on all pages: {model}.")
    print("The words that matter most (weight times spread), with their weights:\n")
    for c, name in enumerate(data.class_names):
        weights = model.weights[[c]].toarray().ravel()
        order = np.argsort(weights * spread)
        for title, top in (f"{name}:", order[::-1][:N_TOP]), ("  against:", order[:N_TOP]):
            print(f"{title:<12}" + "  ".join(f"{data.feature_names[j]} {weights[j]:+.2f}" for j in top))


def main():
    data = fetch_webkb()
    print_tables(data)
    print_top_features(data)


if __name__ == "__main__":
    main()
