"""Evaluation: filtered ranking, metrics of node classification, baselines."""
