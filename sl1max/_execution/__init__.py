"""Solving the problems of a model: threads, other processes, checkpoints, progress."""
