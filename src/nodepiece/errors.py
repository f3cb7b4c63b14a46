"""How a command ends before its end: a mistake that is the user's to fix, or the user's wish."""

from collections.abc import Callable

MOST_CHARACTERS = 1_500  # of a message
STOPPED = 130, "stopped before the end; nothing half-written is left behind"  # status, sentence


class InputError(ValueError):
    """A mistake in what the user gave: a file, a value, a name.

    Its message is one sentence or two that name the offending file, line or value and say what
    to do next. The command line prints it without a traceback and exits with status 2. What a
    file holds may be quoted in it: it stays on one line of readable length all the same.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(one_line(sentence))


class SettingError(InputError):
    """Settings that do not go together, or not with the data.

    Its template names each setting as {field}. The message has the field itself, as in Python;
    `named` puts in what the reader typed: a key of TOML, an option of a command.
    """

    def __init__(self, template: str) -> None:
        self.template = template
        super().__init__(template.format_map(_Names(str)))

    def named(self, name: Callable[[str], str]) -> InputError:
        return InputError(self.template.format_map(_Names(name)))


class _Names(dict[str, str]):
    def __init__(self, name: Callable[[str], str]) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, field: str) -> str:
        return self.name(field)


def one_line(text: str) -> str:
    """The text with white space as blanks, other control characters escaped, and its middle left
    out where it is long: the end says what to do.
    """
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS * 2 // 3]} ... {text[-MOST_CHARACTERS // 3 :]}"
    if text.isprintable():
        return text
    escaped = "".join(
        each if each.isprintable() else " " if each.isspace() else ascii(each)[1:-1]
        for each in text
    )
    return one_line(escaped) if len(escaped) > MOST_CHARACTERS + 5 else escaped


class Stopped(Exception):
    """Work that was interrupted in good order; its message says how to go on. Exit status 130."""
