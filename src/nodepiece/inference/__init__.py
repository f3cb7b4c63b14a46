"""A trained run: questions answered by name."""
