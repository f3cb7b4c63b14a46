"""Errors that the user can fix, and the interruption of a command by the user."""

from collections.abc import Callable

MAX_CHARACTERS = 1_500  # of a message
STOPPED = 130, "stopped before the end; nothing half-written is left behind"  # status, sentence


class InputError(ValueError):
    """A mistake in what the user gave: a file, a value, a name.

    Its message is one or two sentences with the offending file, line or value and what to do
    next. The command line prints it without a traceback and exits with status 2. It may quote the
    contents of a file, so it is put on one line and shortened.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(one_line(sentence))


class SettingError(InputError):
    """Settings that do not fit each other or the data.

    Its template names each setting as {field}. The message has the name of the field, as in
    Python; `named` inserts what the user typed: a key of TOML, an option of a command.
    """

    def __init__(self, template: str) -> None:
        self.template = template
        super().__init__(template.format_map(_Names(str)))

    def named(self, name: Callable[[str], str]) -> InputError:
        return InputError(self.template.format_map(_Names(name)))


class MissingExtra(InputError):
    """A package that is not installed, with the commands that install the extra it belongs to.

    The first command works wherever nodepiece is installed, also from a clone or a wheel: pip takes
    the requirements of the extra from the installed package and does not look for it on an index.
    """

    def __init__(self, need: str, extra: str, instead: str = "") -> None:
        super().__init__(
            f"{need}; pip install 'nodepiece[{extra}]', or pip install -e '.[{extra}]' in a clone"
            + (f"; or {instead}" if instead else "")
        )


class _Names(dict[str, str]):
    def __init__(self, name: Callable[[str], str]) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, field: str) -> str:
        return self.name(field)


def one_line(text: str) -> str:
    """The text with white space as blanks and other control characters escaped.

    The middle of a long text is left out, as the end has the advice.
    """
    if len(text) > MAX_CHARACTERS:
        text = f"{text[: MAX_CHARACTERS * 2 // 3]} ... {text[-MAX_CHARACTERS // 3 :]}"
    if text.isprintable():
        return text
    escaped = "".join(
        each if each.isprintable() else " " if each.isspace() else ascii(each)[1:-1]
        for each in text
    )
    return one_line(escaped) if len(escaped) > MAX_CHARACTERS + 5 else escaped


class Stopped(Exception):
    """An orderly interruption; its message says what was done so far. Exit status 130."""
