"""How a command ends before its end: a mistake that is the user's to mend, or the user's wish."""

STOPPED = 130, "stopped before the end; nothing half-written is left behind"  # status, sentence


class InputError(ValueError):
    """A mistake in what the user gave: a file, a value, a name.

    Its message is one sentence or two that name the offending file, line or value and say what
    to do next. The command line prints it without a traceback and exits with status 2.
    """


class Stopped(Exception):
    """Work that was interrupted in good order; its message says how to go on. Exit status 130."""
