"""Training: batches, negatives, losses, the loop over epochs, checkpoints."""
