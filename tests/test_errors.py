from nodepiece.errors import MAX_CHARACTERS, InputError


def test_a_message_stays_on_one_line_whatever_it_quotes() -> None:
    message = str(InputError("line 3: 'a\nb\tc\x1b[31m\0\udc80é' is no fact; fix it"))
    assert message == "line 3: 'a b c\\x1b[31m\\x00\\udc80é' is no fact; fix it"


def test_a_long_message_keeps_its_beginning_and_its_advice() -> None:
    message = str(InputError(f"unknown node {'x' * 10_000}; check the name"))
    assert len(message) < 2_000
    assert message.startswith("unknown node x") and message.endswith("x; check the name")


def test_a_message_of_control_characters_is_no_longer_for_being_escaped() -> None:
    assert len(str(InputError("\0" * 10_000))) <= MAX_CHARACTERS + 5
