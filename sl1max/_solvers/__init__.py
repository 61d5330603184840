"""Solvers made of several compiled objects: grouped rows, many classes."""
