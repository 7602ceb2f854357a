"""A client in a network namespace of its own: it reaches the Connect server's port, and nothing
reaches it.

Two namespaces share no network, but files: a Unix socket carries the bytes of that one port.

    python -m tests.spark.apart SOCKET PORT     in the namespace: tests.spark.driver at that port
"""

import functools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.spark.cluster import Driver, Service, environment

IN_NAMESPACE = ["unshare", "--map-root-user", "--net", "--"]


@functools.cache
def why_not() -> str:
    """Why there is no namespace on this machine; empty where there is."""
    command = [*IN_NAMESPACE, "ip", "link", "set", "lo", "up"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return "needs unshare, of util-linux"
    return f"may not make network namespaces: {done.stderr.strip()}" if done.returncode else ""


class ApartDriver(Driver):
    """`tests.spark.driver` in a namespace of its own, under Spark Connect."""

    def __init__(self, remote: str, folder: Path, python: str = sys.executable) -> None:
        port = remote.rpartition(":")[2].partition("/")[0]
        program = f"ip link set lo up && exec {python} -m tests.spark.apart {folder}/wire {port}"
        self._service = Service(
            [*IN_NAMESPACE, "sh", "-c", program],
            folder / f"apart-{os.urandom(4).hex()}.log",
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.process = self._service.process
        self.events = []


@contextmanager
def wire(remote: str, folder: Path) -> Iterator[None]:
    """Carry what comes through a Unix socket to a Connect server's port."""
    if reason := why_not():
        pytest.skip(reason)
    port = int(remote.rpartition(":")[2].partition("/")[0])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "wire"))
    _forward(listener, lambda: socket.create_connection(("127.0.0.1", port)))
    yield
    listener.close()


def _forward(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    listener.listen()

    def take() -> None:
        with suppress(OSError):
            while True:
                here, there = listener.accept()[0], connect()
                for ends in ((here, there), (there, here)):
                    threading.Thread(target=_pump, args=ends, daemon=True).start()

    threading.Thread(target=take, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _unix(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


if __name__ == "__main__":
    path, port = sys.argv[1:]
    _forward(socket.create_server(("127.0.0.1", int(port))), lambda: _unix(path))
    from tests.spark.driver import main

    main(f"sc://127.0.0.1:{port}", {})
