"""Solvers that are more than one compiled object: grouped rows, many classes."""
