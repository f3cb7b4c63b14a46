"""Facts as integers, and pure algorithms on them."""
