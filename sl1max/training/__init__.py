"""Training: one model, a path, steps on request, means without examples, single classes."""
