"""Losses, negatives, the loop, checkpoints: from node vectors that are random to ones that know."""
