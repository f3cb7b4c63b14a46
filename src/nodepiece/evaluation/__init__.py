"""How high the true answer stands among all others."""
