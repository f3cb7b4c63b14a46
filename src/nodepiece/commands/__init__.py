"""One file for each command.

What a command computes with (NumPy, numba, pyarrow, Matplotlib) is imported when it runs, so that
`nodepiece --help` answers at once.
"""
