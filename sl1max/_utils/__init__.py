"""Helpers that every layer above the compiled core may use."""
