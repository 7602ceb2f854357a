"""Items made ahead of their use."""

import threading
from collections.abc import Iterator

import pytest

from sparknet.loaders.batches import ahead


def test_in_order_and_ahead():
    second = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        second.set()
        yield from range(2, 100)

    made = ahead(items())
    assert next(made) == 1
    assert second.wait(10)  # while the first is in use
    assert list(made) == list(range(2, 100))
    assert list(ahead([])) == []


def test_an_error_comes_where_its_item_would():
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no second")

    made = ahead(items())
    assert next(made) == 1
    with pytest.raises(ValueError, match="no second"):
        next(made)


def test_nobody_wants_more():
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            ended.set()

    made = ahead(items())
    assert next(made) == 0
    made.close()
    assert ended.wait(10)
