"""The one exception that is the user's to mend."""


class InputError(ValueError):
    """A mistake in what the user gave: a file, a value, a name.

    Its message is one sentence or two that name the offending file, line or value and say what
    to do next. The command line prints it without a traceback and exits with status 2.
    """
