"""The tokenizer for knowledge graphs."""

__version__ = "0.1.0"
