"""The five models: problems of a training set, and a model of their solutions."""
