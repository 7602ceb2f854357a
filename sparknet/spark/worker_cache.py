"""What a Python worker keeps between the jobs that Spark runs in it.

Spark reuses its Python workers, so a net built for one job may still be there for the next;
but a partition may come to another worker, and idle workers are ended.  So this is a cache and
never the only copy: `kept` builds what is not there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar, cast

Kept = TypeVar("Kept")

_ROOM = 4
_store: OrderedDict[Hashable, Any] = OrderedDict()
_lock = RLock()


def kept(key: Hashable, make: Callable[[], Kept]) -> Kept:
    """What this process keeps under ``key``, made by ``make`` if it is not there.

    The four that were used last are kept; ``key`` should name the run and the part in it.
    """
    with _lock:
        if key not in _store:
            _store[key] = make()
        _store.move_to_end(key)
        while len(_store) > _ROOM:
            _store.popitem(last=False)
        return cast(Kept, _store[key])


def forget(key: Hashable | None = None) -> None:
    """Drop what is kept under a key, or everything."""
    with _lock:
        if key is None:
            _store.clear()
        else:
            _store.pop(key, None)
