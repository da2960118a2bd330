"""Environments of Gymnasium: by id, in wrappers, one by one or as a `gymnasium.vector.VectorEnv`."""
