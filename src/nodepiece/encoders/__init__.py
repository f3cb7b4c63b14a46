"""From pieces to node vectors (section 3.3)."""
