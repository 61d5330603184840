"""The five models: from a training set to problems, from their solutions to a model."""
