"""An interrupt is raised, wherever it comes."""

import signal
import sys
from types import CodeType

import numpy as np
import pytest

from sparknet import caffe
from sparknet.native import NDArray, onednn
from sparknet.native.exchange import OWNERS
from sparknet.native.strided import Strided
from sparknet.proto import parse_solver
from tests.caffe.nets import TEXT

SOLVER = f"net_param {{ {TEXT} }} base_lr: 0.1 lr_policy: 'fixed'"


class Stop(BaseException):
    """What a signal's handler raises."""


def once(monkeypatch, owner, name, error):
    """The first call raises the error, as a signal's handler does."""
    usual, left = getattr(owner, name), [error]

    def interrupted(self, *words):
        if left:
            raise left.pop()
        return usual(self, *words)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Stop(7), TimeoutError("late")])
@pytest.mark.parametrize("look", [np.asarray, memoryview, np.array])
def test_while_numpy_looks_at_an_array(monkeypatch, error, look):
    array = NDArray.zeros((2, 3))
    once(monkeypatch, Strided, "_exporter", error)
    with pytest.raises(type(error)) as caught:
        look(array)
    assert caught.value is error
    assert look(array).shape == (2, 3)


def test_an_error_that_stays_is_raised_once(monkeypatch):
    def broken(self):
        raise MemoryError("no more")

    monkeypatch.setattr(Strided, "_exporter", broken)
    with pytest.raises(MemoryError, match="no more"):
        memoryview(NDArray.zeros((2,)))


def test_no_code_runs_while_memory_is_given_back():
    """What a signal's handler raised there would be lost."""
    lent, called = len(OWNERS), []
    array = NDArray.view(np.zeros(4, np.float32))
    assert len(OWNERS) == lent + 1
    sys.setprofile(lambda frame, event, _: called.append((event, frame.f_code.co_name)))
    del array
    sys.setprofile(None)
    assert len(OWNERS) == lent
    assert [name for event, name in called if event == "call"] == []


@pytest.fixture
def _signal():
    usual = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    yield
    sys.setprofile(None)
    signal.signal(signal.SIGUSR1, usual)


def _calls(code: CodeType | None) -> set[CodeType]:
    """What a solver's making calls; where it calls `code` first, a signal arrives."""
    seen: set[CodeType] = set()

    def watch(frame, event, _):
        if event == "call" and frame.f_code not in seen:
            seen.add(frame.f_code)
            if frame.f_code is code:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGUSR1)

    solver = parse_solver(SOLVER)
    sys.setprofile(watch)
    try:
        caffe.get_solver(solver)
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.skipif(onednn() == "none", reason="its net needs oneDNN")
@pytest.mark.usefixtures("_signal")
def test_a_solver_in_the_making():
    _calls(None)
    ours = [code for code in _calls(None) if "sparknet" in code.co_filename]
    assert {"_exporter", "_lend", "_interface", "get_solver"} <= {code.co_name for code in ours}
    lost = []
    for code in ours:
        try:
            _calls(code)
            lost.append(code.co_qualname if sys.version_info >= (3, 11) else code.co_name)
        except KeyboardInterrupt:
            pass
    assert lost == []
