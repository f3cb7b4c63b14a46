"""Runs `nodepiece` and Python programs in forks of one process that has imported everything.

Importing PyTorch takes longer than most commands of the documentation. `python -m
tests.pages.command_server SOCKET` prints a line when it is ready. A client passes its standard
streams, arguments and folder; `write_client` writes one as an executable named `nodepiece`.
"""

import json
import os
import signal
import socket
import sys
import traceback
from importlib import import_module
from pathlib import Path

IMPORTED = (
    "torch",
    "torch_geometric.utils",
    "matplotlib.figure",
    "pyarrow.parquet",
    "nodepiece.cli",
    "nodepiece.inference.run",
    "nodepiece.tasks.registry",
    "nodepiece.tokenizer.tokens",
)
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    request = json.dumps([os.getcwd(), sys.argv[1:]]).encode()
    socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(request)
    sys.exit((server.recv(1) or b"\\x01")[0])
"""


def write_client(client: Path, path: Path) -> None:
    """Write an executable that has the process at `path` run its arguments."""
    client.write_text(CLIENT.format(python=sys.executable, path=str(path)), encoding="utf-8")
    client.chmod(0o755)


def run_arguments(arguments: list[str]) -> int:
    """Run a command of nodepiece, or after `-c` a program, and return the exit status."""
    from nodepiece.__main__ import main

    try:
        if arguments[:1] == ["-c"]:
            exec(compile(arguments[1], "<block>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = ["nodepiece", *arguments]
            main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def answer(connection: socket.socket) -> None:
    """Run one request in this process, which ends with it."""
    length, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as file:
        folder, arguments = json.loads(file.read(int.from_bytes(length, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(folder)
    sys.path.insert(0, folder)
    status = run_arguments(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([status % 256]))


def serve(path: str) -> None:
    """Answer requests until the process is ended, each in a fork."""
    for module in IMPORTED:
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        os.write(1, b"ready\n")
        while True:
            connection, _ = server.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    try:
                        answer(connection)
                    finally:
                        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
