"""What the last lines of a run say: which digits, skipped tests by reason, recorded cases by suite.

A test says which recorded cases it replays with `tests.goldens.cases` or `golden`.  A suite counts
as touched when one of its cases ran; then all of them must, unless the run was narrowed down (-k,
-m other than make test's, --lf, a single test).  A run of all tests must touch every suite.  A run
fails where one is missing.
"""

import gc
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from benchmarks.digits import digits, source
from tests import fork_server
from tests.engines import leave_out
from tests.goldens import SUITES, index
from tests.retry import OUTPUT, passes_alone

PROPERTY, DATA = "golden", "data"
EVERYDAY = "not slow"
"""What make test chooses: all recorded cases are among it."""
TESTS = Path(__file__).resolve().parent
LATEST = float(os.environ.get("SPARKNET_LATEST", "inf"))
"""In seconds since 1970: no test of .ci/run begins later, as a machine's time is limited."""
NO_TIME = "CI had no time left for it"
SLOW_ROWS = int(os.environ.get("SPARKNET_SLOW_ROWS", "1"))
"""Of each slow test with parameters, .ci/run runs one row in so many: other rows each day."""

settings.register_profile("patient", deadline=None)  # a busy machine is no fault
settings.load_profile("patient")

# A shell's background jobs ignore Ctrl-C, and so would the tests that are about it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


LIMITS = {"long": 0, "slow": 1200, "": 300}
"""Seconds that a test may take, by its marker: one that hangs must not take the run with it."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    seconds = next(
        limit for mark, limit in LIMITS.items() if not mark or [*item.iter_markers(mark)]
    )

    def stop(*_: object) -> None:
        pytest.fail(f"the test took more than {seconds} s")

    handler = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)


@pytest.fixture
def mnist(record_property):
    """The files of 10,000 digits' images and labels."""
    record_property(DATA, source())
    return digits()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "golden(suite, *names): replays recorded cases of a suite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out(items)
    chosen = draw_rows(
        item.nodeid
        for item in items
        if item.get_closest_marker("slow") and not item.get_closest_marker("long")
    )
    dropped = [item for item in items if chosen.get(item.nodeid) is False]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if chosen.get(item.nodeid) is not False]
    for item in items:
        for mark in item.iter_markers("golden"):
            suite, *names = mark.args
            for name in names or _names(item):
                item.user_properties.append((PROPERTY, f"{suite}:{name}"))


def draw_rows(
    names: Iterable[str], share: int = SLOW_ROWS, seed: str = os.environ.get("SPARKNET_SEED", "")
) -> dict[str, bool]:
    """Return which rows of slow tests run: of each test one in ``share``, and at least one."""
    tables: dict[str, list[str]] = {}
    for name in names:
        tables.setdefault(name.partition("[")[0], []).append(name)
    chosen = {
        name
        for test, rows in tables.items()
        for name in random.Random(f"{seed} {test}").sample(rows, -(-len(rows) // share))
    }
    return {name: name in chosen for rows in tables.values() for name in rows}


def pytest_runtest_setup() -> None:
    if time.time() > LATEST:
        pytest.skip(NO_TIME)
    fork_server.install(sys.modules.get(fork_server.LAUNCHER))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note the tests for .ci/collected.py, which holds what CI's steps chose against what there is.

    The garbage collector passes over sixteen thousand tests from now on.
    """
    gc.freeze()
    if (folder := os.environ.get("SPARKNET_COLLECTED")) and session.items:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".txt", delete=False) as file:
            file.writelines(f"{item.nodeid}\n" for item in session.items)


def _names(item: pytest.Item) -> Iterator[str]:
    parameters = item.callspec.params if isinstance(item, pytest.Function) else {}
    for value in (parameters.get(key) for key in ("case", "entry", "name")):
        if value is not None:
            yield str(value["name"] if isinstance(value, dict) else value)
            return


def _replayed(reports):
    """Suite → cases."""
    found: dict[str, set[str]] = {}
    for report in reports:
        for key, value in getattr(report, "user_properties", ()):
            if key == PROPERTY:
                suite, _, name = value.partition(":")
                found.setdefault(suite, set()).add(name)
    return found


def _missing(config: pytest.Config, ran: dict[str, set[str]]) -> dict[str, list[str]]:
    option = config.option
    chosen = option.markexpr not in ("", EVERYDAY) or option.keyword or getattr(option, "lf", False)
    if chosen or any("::" in arg for arg in config.args) or time.time() > LATEST:
        return {}
    everything = any(Path(arg).resolve() in (TESTS, TESTS.parent) for arg in config.args)
    suites = [suite for suite in SUITES if everything or suite in ran]
    listed = {suite: [str(entry["name"]) for entry in index(suite)] for suite in suites}
    return {
        suite: [name for name in names if name not in ran.get(suite, set())]
        for suite, names in listed.items()
        if set(names) - ran.get(suite, set())
    }


def _outcomes(config: pytest.Config) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """What was replayed, and what of it failed."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    failed = _replayed([*stats.get("failed", ()), *stats.get("error", ())])
    ran = _replayed([*stats.get("passed", ()), *stats.get("failed", ()), *stats.get("error", ())])
    return ran, failed


@pytest.hookimpl(trylast=True)  # after xdist's workers have ended
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    stopped = session.shouldstop or session.shouldfail or config.option.collectonly
    if stopped or hasattr(config, "workerinput"):
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == pytest.ExitCode.TESTS_FAILED and reporter:
        if not passes_alone(session, reporter.stats):
            return
        session.exitstatus = pytest.ExitCode.OK
    elif exitstatus != pytest.ExitCode.OK:
        return
    if _missing(config, _outcomes(config)[0]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    lines = (*_used(terminalreporter), *_skipped(terminalreporter), *_golden_counts(config))
    for line in (*lines, *config.stash.get(OUTPUT, [])):
        terminalreporter.write_line(line)


def _used(reporter):
    """What the tests told of the data they used."""
    reports = [*reporter.stats.get("passed", ()), *reporter.stats.get("failed", ())]
    told = (pair for report in reports for pair in getattr(report, "user_properties", ()))
    return sorted({value for key, value in told if key == DATA})


def _skipped(reporter):
    reasons = Counter(report.longrepr[2] for report in reporter.stats.get("skipped", ()))
    return [f"skipped {n}: {r.removeprefix('Skipped: ')}" for r, n in reasons.most_common()]


def _golden_counts(config: pytest.Config) -> Iterator[str]:
    ran, failed = _outcomes(config)
    if not ran:
        return
    parts = []
    for suite in (suite for suite in SUITES if suite in ran):
        part = f"{suite} {len(ran[suite] - failed.get(suite, set()))}"
        parts.append(part + (f" ({len(failed[suite])} failed)" if suite in failed else ""))
    passed = sum(len(names - failed.get(suite, set())) for suite, names in ran.items())
    total = f"{passed} of {sum(SUITES.values())} recorded cases"
    yield f"goldens: {total}: {', '.join(parts)}"
    for suite, names in _missing(config, ran).items():
        shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        yield f"goldens: {len(names)} of {suite} did not run: {shown}"
