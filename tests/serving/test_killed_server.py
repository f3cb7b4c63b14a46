"""After kill -9 under load, every acknowledged update is there, and no half of one."""

import os
import signal
from pathlib import Path
from shutil import copytree
from time import sleep

import httpx
import torch
from tests.inference.fresh_vectors import facts_of, fresh_vectors
from tests.serving.killed_server import Sent, check_facts, kill_under_load, server_process

from nodepiece.inference.run import load_links

ALONE = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
RUN = "/v1/runs/couples"


def test_acknowledged_updates_survive_kills_under_load(trained: Path, tmp_path: Path) -> None:
    folder, sent = copytree(trained, tmp_path / "couples"), Sent()
    for number in range(3):
        kill_under_load(
            folder,
            "lives in",
            ("town 1", "town 2"),
            sent,
            num_updates=4 + 11 * number,
            label=str(number),
        )
        run = load_links(folder)
        assert check_facts(facts_of(run), 2, sent) == (0, 0)
    assert len(sent.acknowledged) >= 45
    torch.testing.assert_close(run.node_vectors, fresh_vectors(run))


def new_client(address: str) -> httpx.Client:
    """A client with a connection of its own, which any of the workers may accept."""
    return httpx.Client(base_url=address, trust_env=False, timeout=60)


def add(address: str, name: str) -> dict[str, int]:
    with new_client(address) as client:
        body = {"add": [[name, "lives in", "town 1"]]}
        answer = client.post(f"{RUN}/update", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, int] = answer.json()
    return found


def version_with(address: str, name: str, version: int) -> int:
    with new_client(address) as client:
        headers = {"Nodepiece-Min-Version": str(version)}
        answer = client.get(f"{RUN}/node", params={"name": name}, headers=headers)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["version"])


def workers_of(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def test_workers_see_updates_in_order_and_a_killed_one_is_started_again(
    trained: Path, tmp_path: Path
) -> None:
    folder = copytree(trained, tmp_path / "couples")
    options = ("--writable", "--workers", "2")
    with server_process(folder, *options, environment=ALONE) as (process, address):
        for number in range(1, 6):
            assert add(address, f"new {number}")["version"] == number
            assert {version_with(address, f"new {number}", number) for _ in range(3)} == {number}
        writer = min(workers_of(process.pid))  # the first that was started
        os.kill(writer, signal.SIGKILL)
        while Path(f"/proc/{writer}").exists() and writer in workers_of(process.pid):
            sleep(0.01)
        assert add(address, "new 6")["version"] == 6  # waits for the new one
        assert version_with(address, "new 6", 6) == 6
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert {f"new {n}" for n in range(1, 7)} <= {fact[0] for fact in facts_of(load_links(folder))}
