"""Anchors, vocabulary, relational context: every node as a short sequence of pieces."""
