"""Vectors of head, relation and tail to scores: higher is more plausible."""
