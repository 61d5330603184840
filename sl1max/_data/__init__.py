"""Training sets: validation, conversion, sums per class, penalties."""
