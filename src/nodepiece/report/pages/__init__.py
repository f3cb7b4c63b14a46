"""Templates of self-contained pages: no script, style or image from a network."""
