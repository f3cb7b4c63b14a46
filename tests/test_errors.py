import re
import tomllib
from pathlib import Path

from nodepiece.errors import MAX_CHARACTERS, InputError, MissingExtra

ROOT = Path(__file__).parents[1]


def test_a_message_stays_on_one_line_whatever_it_quotes() -> None:
    message = str(InputError("line 3: 'a\nb\tc\x1b[31m\0\udc80é' is no fact; fix it"))
    assert message == "line 3: 'a b c\\x1b[31m\\x00\\udc80é' is no fact; fix it"


def test_a_long_message_keeps_its_beginning_and_its_advice() -> None:
    message = str(InputError(f"unknown node {'x' * 10_000}; check the name"))
    assert len(message) < 2_000
    assert message.startswith("unknown node x") and message.endswith("x; check the name")


def test_a_message_of_control_characters_is_no_longer_for_being_escaped() -> None:
    assert len(str(InputError("\0" * 10_000))) <= MAX_CHARACTERS + 5


def test_a_missing_package_is_reported_with_commands_for_a_clone_and_for_an_installed_package() -> (
    None
):
    assert str(MissingExtra("serving needs fastapi", "serve")) == (
        "serving needs fastapi; pip install 'nodepiece[serve]', or pip install -e '.[serve]' in a "
        "clone"
    )


def test_extras_that_messages_name_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = re.findall(r"MissingExtra\(\s*f?\"[^\"]+\",\s*\"(\w+)\"", "\n".join(source))

    assert len(named) == 8 and set(named) <= set(project["optional-dependencies"])
