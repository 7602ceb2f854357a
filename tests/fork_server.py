"""Fork worker processes of trainings from one that has imported what they need.

A worker needs 0.7 s of processor time to start, which is more than the training of most tests.  A
server stands for one environment (variables, search path); the first two workers of each
environment, and every worker where there is no /proc, start as the product starts them.
"""

import os
import pickle
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace

LAUNCHER = "sparknet.training.workers.local"
OWN = ("OMP_NUM_THREADS", "PYTEST_CURRENT_TEST")
"""Variables that a worker has for itself."""
_MAX_REQUEST = 1 << 20


class ForkedProcess:
    """What the launcher needs of subprocess.Popen, for a process that the server forked."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid, self._status = pid, status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._read()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        if self.returncode is None:
            self._read()
        assert self.returncode is not None
        return self.returncode

    def _read(self) -> None:
        self.returncode = int(os.read(self._status, 20) or -signal.SIGKILL)
        os.close(self._status)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class ForkServer:
    """The client's side of one server process."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), *_torch()],
                env={**env, "OMP_NUM_THREADS": "1"},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    def close(self) -> None:
        """End the server; its workers go on."""
        self._channel.close()
        self._process.wait()

    def start(self, program: str, number: int, env: Mapping[str, str]) -> ForkedProcess | None:
        """Fork a worker; None where the server has ended."""
        status, theirs = os.pipe()
        request = pickle.dumps((program, dict(env), str(Path.cwd())))
        try:
            socket.send_fds(self._channel, [request], [number, 1, 2, theirs])
            pid = self._channel.recv(20)
        except OSError:
            pid = b""
        os.close(theirs)
        if not pid:
            os.close(status)
            return None
        return ForkedProcess(int(pid), status)


def _torch() -> list[str]:
    return ["torch"] if "torch" in sys.modules else []


MAX_SERVERS = 3
"""Some tests have an environment of their own."""
SERVERS: dict[frozenset[tuple[str, str]], ForkServer] = {}
STARTS: Counter[frozenset[tuple[str, str]]] = Counter()
PIDS: list[int] = []
"""The workers in the order of their starts."""


def popen(words, *, env, **rest):
    """Start a worker as subprocess.Popen does, or fork it if its environment is known."""
    key = frozenset((name, value) for name, value in env.items() if name not in OWN)
    STARTS[key] += 1
    if STARTS[key] > 2 and key not in SERVERS:
        if len(SERVERS) == MAX_SERVERS:
            SERVERS.pop(next(iter(SERVERS))).close()
        SERVERS[key] = ForkServer(env)
    server = SERVERS.get(key)
    forked = server and server.start(words[-2], int(words[-1]), env)
    process = forked or subprocess.Popen(words, env=env, **rest)
    PIDS.append(process.pid)
    return process


def install(launcher: ModuleType | None) -> None:
    """Have the launcher fork its workers, if it is imported."""
    if launcher and launcher.subprocess is subprocess and Path("/proc/self/task").exists():
        launcher.subprocess = SimpleNamespace(
            Popen=popen,
            DEVNULL=subprocess.DEVNULL,
            TimeoutExpired=subprocess.TimeoutExpired,
        )


def serve(number: int) -> None:
    """Fork a process for each request, until the client is gone."""
    from sparknet.training.workers import process  # noqa: F401  what each worker needs

    if sys.argv[2:]:
        import torch  # noqa: F401
    assert len([*Path("/proc/self/task").iterdir()]) == 1, "a fork would lose threads"
    channel = socket.socket(fileno=number)
    while True:
        request, files, _, _ = socket.recv_fds(channel, _MAX_REQUEST, 4)
        if not request:
            return
        if not os.fork():
            _watch(channel, pickle.loads(request), files)
        for file in files:
            os.close(file)
        _reap()


def _reap() -> None:
    """Wait for those watchers that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _watch(
    channel: socket.socket, request: tuple[str, dict[str, str], str], files: list[int]
) -> None:
    """Start a worker, say its number, and how it ended."""
    worker, status = files[0], files[3]
    if not (pid := os.fork()):
        channel.close()
        os.close(status)
        _work(*request, worker, files[1:3])
    for file in files[:3]:
        os.close(file)
    channel.send(str(pid).encode())
    channel.close()
    _, code = os.waitpid(pid, 0)
    os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
    os._exit(0)


def _work(program: str, env: dict[str, str], folder: str, number: int, output: list[int]) -> None:
    """Become a worker in a session of its own."""
    from sparknet.training.workers import local, process

    code = 1
    try:
        os.setsid()
        for place, file in enumerate(output, 1):
            os.dup2(file, place)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = [program, str(number)]
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        if program == local.PROGRAM:
            code = process.main(number)
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
