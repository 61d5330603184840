"""Training: one model, a path, single steps, moments without examples, single classes."""
