"""Figures of vocabularies and runs."""
