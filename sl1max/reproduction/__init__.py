"""Reproduction of the tables of the paper."""
