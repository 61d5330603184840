"""Slow numpy twin of boosting: the sequential updates of Collins, Schapire and Singer, everything from scratch.

Labels ``sign`` are +1 and -1, ``mass`` sums to one. The last coordinate is a constant feature, if there is an
intercept.
"""

from dataclasses import dataclass

import numpy as np

LEAST_GAIN = 1e-16
TIE = 1e-9  # the first of gains that are equal but for rounding


@dataclass(frozen=True)
class BoostTwin:
    X: np.ndarray
    sign: np.ndarray
    mass: np.ndarray
    exponential: bool = False
    intercept: bool = True
    smoothing: float = 0.0

    @property
    def features(self):
        return np.column_stack([self.X, np.ones(len(self.X))]) if self.intercept else self.X

    def margin(self, lam):
        return self.sign * (self.features @ lam)

    def loss(self, lam):
        margin = self.margin(lam)
        return self.mass @ (np.exp(-margin) if self.exponential else np.logaddexp(0, -margin))

    def weight(self, lam):
        """Of each example: mass times the negative derivative of its loss."""
        margin = self.margin(lam)
        return self.mass * (np.exp(-margin) if self.exponential else 1 / (1 + np.exp(margin)))

    def steps(self, lam):
        """Step and promised decrease of every coordinate."""
        weight = self.weight(lam)
        extent = np.abs(self.features).max(axis=0)
        scale = np.where(extent > 0, extent, 1)
        moved = (self.sign * weight)[:, None] * self.features / scale
        raised, lowered = np.maximum(moved, 0).sum(axis=0), np.maximum(-moved, 0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            delta = 0.5 * np.log((raised + self.smoothing) / (lowered + self.smoothing))
        delta = np.clip(np.where(raised == lowered, 0, delta), -30, 30)
        return delta / scale, raised * (1 - np.exp(-delta)) + lowered * (1 - np.exp(delta))

    def run(self, n_rounds):
        """(coordinate, delta, gain) of each round and the losses before and after them."""
        lam = np.zeros(self.features.shape[1])
        rounds, losses = [], [self.loss(lam)]
        for _ in range(n_rounds):
            delta, gain = self.steps(lam)
            if gain.max() < LEAST_GAIN * losses[0]:
                break
            j = int(np.argmax(gain >= (1 - TIE) * gain.max()))
            lam[j] += delta[j]
            rounds.append((j, delta[j], gain[j]))
            losses.append(self.loss(lam))
        return rounds, losses
