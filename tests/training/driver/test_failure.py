"""Errors of workers, raised where a run was started."""

import inspect

import pytest

from sparknet import errors
from sparknet.errors import OutOfMemory, SparkError, SparkNetError, WorkerError
from sparknet.training.driver.failure import error_of, failure

KINDS = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind) and issubclass(kind, SparkNetError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_each_of_sparknets_own_keeps_its_type(kind):
    error = error_of({"type": kind.__name__, "message": "no luck"}, 3)
    assert type(error) is kind
    assert str(error) == "no luck (worker 3)"


def test_one_that_was_raised():
    said = failure(OutOfMemory("there is no memory for 8 bytes"))
    assert said == {"type": "OutOfMemory", "message": "there is no memory for 8 bytes"}
    assert isinstance(error_of(said, 0), MemoryError)


@pytest.mark.parametrize("name", ["KeyError", "Any", "shown", "no such"])
def test_others_are_named(name):
    said = {"type": name, "message": "no luck"}
    for otherwise in (WorkerError, SparkError):
        error = error_of(said, 1, otherwise)
        assert type(error) is otherwise
        assert str(error) == f"{name}: no luck (worker 1)"
