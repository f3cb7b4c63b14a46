"""The experiments of the paper, one readable file each."""
