"""The asv suite: synthetic data, seconds and counts."""
