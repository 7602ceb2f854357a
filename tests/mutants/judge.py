"""Runs in a mutated tree: which tests reach which mutant, and whether one of them fails by it.

python -m tests.mutants.judge PLAN.json: a pytest process collects the tests once and forks for
each run, so that a mutant costs its tests alone.  The first run has no mutant awake: it tells what
each test reaches and how long it takes.  Tests that fail then judge nothing.  A mutant that
acts when its file is loaded is judged in a process of its own.
"""

import builtins
import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import Phase, settings

MOST_SECONDS = 60.0
"""Of tests for each mutant."""
MOST_MEMORY = 12 << 30
PASSED, KILLED, LATE = 0, 1, 2


class Judge:
    def __init__(self, plan):
        self.plan = plan
        self.notes = Path(plan["notes"])
        self.mapping = Path(plan["mapping"])
        self.native: ctypes.CDLL | None = None
        if plan.get("library"):
            importlib.import_module("sparknet.native")  # loads it, as its settings are to be
            self.native = ctypes.CDLL(plan["library"])
        self.failed = False
        self.seconds = 0.0
        self.prepared: set[int] = set()
        self.programs: list[str] = []

    # ---- What pytest calls

    def pytest_collection(self):
        """Hypothesis need not shrink what fails: that takes minutes."""
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", deadline=None, database=None, phases=phases)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:  # a file of tests that cannot be loaded
            _leave(True)
        items = {item.nodeid: item for item in session.items}
        if self.plan.get("only"):
            self._run([items[name] for name in self.plan["tests"] if name in items])
            _leave(self.failed)
        loaded = self._noted()
        outcome = self._forked(lambda: self._map(session.items), self.plan["map_seconds"])
        tests = _mapped(self.mapping.read_text())
        print(f"{len(tests)} of {len(items)} tests mapped", file=sys.stderr, flush=True)
        if outcome == LATE:
            print("the mapping run was cut off by its limit", file=sys.stderr)
        print("fail unmutated:", *(t["name"] for t in tests if t["failed"]), file=sys.stderr)
        self.programs = [one for one in self.plan["programs"] if not self._fails(one, 0)]
        for mutant in self.plan["mutants"]:
            self._judge(mutant, items, tests, mutant["number"] in loaded)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed
        self.seconds += report.duration
        if report.when == "setup" and not self.plan.get("only"):
            self.prepared = self._noted()

    # ---- Runs

    def _judge(self, mutant, items, tests, loaded):
        number = mutant["number"]
        began = time.monotonic()
        outcome, count = PASSED, 0
        if not mutant["at_load"]:
            names, limit = _limited([t for t in tests if number in t["reached"]], MOST_SECONDS)
            count = len(names)
            if names:
                chosen = [items[name] for name in names]
                outcome = self._forked(lambda: self._awake(number, chosen), limit)
        if outcome == PASSED and (loaded or mutant["at_load"]):
            names, limit = _limited(self._near(mutant, tests), MOST_SECONDS / 2)
            count = max(count, len(names))
            outcome = _apart({**self.plan, "only": number, "tests": names}, limit + 30)
        if outcome == PASSED and any(self._fails(one, number) for one in self.programs):
            outcome = KILLED
        took = time.monotonic() - began
        verdict = {"number": number, "tests": count, "outcome": outcome, "seconds": took}
        with Path(self.plan["verdicts"]).open("a") as file:
            file.write(json.dumps(verdict) + "\n")
        word = {PASSED: "survives", LATE: "killed, late"}.get(outcome, "killed")
        words = f"{word} {count} tests, {took:.1f} s: {mutant['says']}"
        print(words, file=sys.stderr, flush=True)

    def _fails(self, program: str, number: int) -> bool:
        """Whether a test in C does, with a mutant awake."""
        try:
            variables = {**os.environ, "SPARKNET_MUTANT": str(number)}
            done = subprocess.run([program], env=variables, capture_output=True, timeout=60)
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0

    def _near(self, mutant, tests):
        """All tests, first those that reach another mutant of the same file."""
        same = {one["number"] for one in self.plan["all"] if one["path"] == mutant["path"]}
        near = [{**test, "order": 0} for test in tests if same & set(test["reached"])]
        return [*near, *({**test, "order": 1} for test in tests)]

    def _awake(self, number: int, items: list[pytest.Item]) -> None:
        os.environ["SPARKNET_MUTANT"] = str(number)
        os.environ.pop("SPARKNET_REACHED")
        builtins.__mutant__.awake = number  # type: ignore[attr-defined]
        builtins.__mutant__.notes = None  # type: ignore[attr-defined]
        if self.native:
            ctypes.c_int.in_dll(self.native, "sn_mutant").value = number
        self._run(items)

    def _run(self, items: list[pytest.Item]) -> None:
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return

    def _map(self, items: list[pytest.Item]) -> None:
        """Writes a line for each test."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.failed, self.seconds = False, 0.0
            self._forget()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            line = {
                "name": item.nodeid,
                "seconds": self.seconds,
                "failed": self.failed,
                "prepared": sorted(self.prepared),
                "reached": sorted(self._noted()),
            }
            with self.mapping.open("a") as file:
                file.write(json.dumps(line) + "\n")
        self.failed = False

    def _forget(self):
        self.notes.write_text("")
        builtins.__mutant__.reached.clear()  # type: ignore[attr-defined]
        if self.native:
            self.native.sn_forget_reached()

    def _noted(self) -> set[int]:
        return {int(line) for line in self.notes.read_text().split()}

    def _forked(self, run: Callable[[], None], seconds: float) -> int:
        """How a run in a child ended; nothing of it is left behind."""
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
                log = os.open(self.plan["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.dup2(log, 1)
                os.dup2(log, 2)
                run()
                _leave(self.failed)
            finally:
                _leave(True)
        return _ended(child, seconds)


def _limited(tests, most):
    """The names of tests that pass, fastest first, and after how many seconds to stop waiting."""
    sums, names = 0.0, dict[str, None]()
    for test in sorted(tests, key=lambda test: (test.get("order", 0), test["seconds"])):
        if not test["failed"] and (not names or sums + test["seconds"] <= most):
            sums += test["seconds"] * (test["name"] not in names)
            names[test["name"]] = None
    return list(names), 60 + 10 * sums


def _mapped(lines):
    """What a fixture reaches, all tests of its file do: it may be theirs, too."""
    tests = [json.loads(line) for line in lines.splitlines()]
    prepared: dict[str, set[int]] = {}
    for test in tests:
        prepared.setdefault(test["name"].split("::")[0], set()).update(test["prepared"])
    for test in tests:
        test["reached"] = {*test["reached"], *prepared[test["name"].split("::")[0]]}
    return tests


def _leave(failed: bool) -> None:
    sys.stdout.flush()
    os._exit(KILLED if failed else PASSED)


def _ended(child: int, seconds: float) -> int:
    end = time.monotonic() + seconds
    pause = 0.005
    found = status = 0
    while found == 0 and time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0 if found else pause)
        pause = min(0.1, pause * 1.5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if found == 0:
        os.waitpid(child, 0)
        return LATE
    return PASSED if status == 0 else KILLED


def _apart(plan, seconds):
    """The same in a process that loads everything with the mutant awake."""
    path = Path(plan["notes"]).with_name("only.json")
    path.write_text(json.dumps(plan))
    variables = {**os.environ, "SPARKNET_MUTANT": str(plan["only"])}
    variables.pop("SPARKNET_REACHED", None)
    with Path(plan["log"]).open("a") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.judge", str(path)],
            env=variables,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return _ended(child.pid, seconds)


def main(words: Iterable[str]) -> None:
    (path,) = words
    plan = json.loads(Path(path).read_text())
    options = ["-s", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
    options += [
        f"--basetemp={plan['temporary']}",
        "--hypothesis-seed=0",
        "--continue-on-collection-errors",
    ]
    pytest.main([*options, *plan["places"]], plugins=[Judge(plan)])


if __name__ == "__main__":
    main(sys.argv[1:])
