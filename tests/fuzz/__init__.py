"""Generated bad input for every reader, every command and every file that nodepiece writes.

    python -m tests.fuzz --seed 0 --inputs 10000      all of it (make fuzz)
    python -m tests.fuzz --seed 0 --only 4711         one input again, in this process

Input number n of a seed is the same in every run. A reader may return a result or raise InputError
with one sentence; a command may end with status 0 or 2. Everything else is a failure: another
exception, a crash of the interpreter, more than 10 s of CPU time or 1 GB of memory.

materials.py   the whole files and folders that are damaged, made once
damage.py      bytes, numbers and texts made wrong, whatever the format
formats.py     the same by format: JSON, TOML, array files, safetensors, Arrow
pickles.py     programs for the reader of .pt files
readers.py, folders.py, commands.py    kinds of inputs: what is made, and what it is given to
cases.py       from a seed and a number to an input and its outcome
workers.py     processes with limits that run inputs, and a parent that notices how they end
"""
