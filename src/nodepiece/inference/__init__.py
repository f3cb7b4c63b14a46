"""A trained run: queries answered by name."""
