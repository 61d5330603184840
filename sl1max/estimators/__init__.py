"""Estimators for scikit-learn."""
