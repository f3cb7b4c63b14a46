"""What `nodepiece serve` refuses before it starts, and how it is started."""

from pathlib import Path

import pytest

from nodepiece.commands.serve import LOCAL, is_loopback, prepare_explanations, settings_of
from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load
from nodepiece.serving.server import address_of, bind

TOKEN = "abcdefghijklmnop"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.5"])
def test_this_machine_may_write_without_a_token(host: str) -> None:
    settings = settings_of(host, True, None, (), False)
    assert is_loopback(host) and settings.writable and settings.token is None
    assert {*settings.hosts} == {*LOCAL, host}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", "10.0.0.1"])
def test_other_machines_need_a_token_to_write(host: str, token_file: Path) -> None:
    with pytest.raises(InputError, match="would let any machine change the graph"):
        settings_of(host, True, None, (), False)
    settings = settings_of(host, True, token_file, (), False)
    assert settings.token == TOKEN and settings.hosts == ()
    assert not settings_of(host, False, None, (), False).writable


@pytest.mark.parametrize("text", ["", "short", "with a blank in the middle", "ümläute" * 5])
def test_a_token_is_long_and_plain(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(InputError, match="at least 16 letters"):
        settings_of("127.0.0.1", True, tmp_path / "token", (), False)


def test_a_token_without_writing_is_a_mistake(token_file: Path) -> None:
    with pytest.raises(InputError, match="--token-file is for updates"):
        settings_of("127.0.0.1", False, token_file, (), False)


def test_a_port_in_use_is_refused_in_a_sentence() -> None:
    with bind("127.0.0.1", 0) as bound:
        bound.listen()
        assert address_of(bound, "127.0.0.1").startswith("http://127.0.0.1:")
        with pytest.raises(InputError, match="choose another --port"):
            bind("127.0.0.1", bound.getsockname()[1])
    with pytest.raises(InputError, match="cannot serve at no such host"):
        bind("no such host", 0)


def test_a_server_explains_a_fact_of_each_run_before_it_is_asked(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explained: list[dict[str, str]] = []
    monkeypatch.setattr(LinkRun, "explain", lambda self, **fact: explained.append(fact))
    prepare_explanations([load(run), load(run)]).join()
    assert [sorted(fact) for fact in explained] == 2 * [["head", "relation", "tail"]]
