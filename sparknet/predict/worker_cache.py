"""Worker cache: objects that a Python worker keeps between Spark jobs.

Spark reuses a Python worker after a job that read its records to the end, and ends one that left
some unread.  A partition may come to another worker, and idle workers are ended.  So the cache is
never the only copy: `cached` builds what is missing, and `net_rdd` writes what must not be lost.
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


def cached(key: Hashable, make: Callable[[], Kept]) -> Kept:
    """Return the object under ``key`` in this process's cache; ``make`` builds it if it is missing.

    The four objects used last stay; ``key`` should name the run and the part in it.
    """
    with _lock:
        if key not in _store:
            _store[key] = make()
        _store.move_to_end(key)
        while len(_store) > _ROOM:
            _store.popitem(last=False)
        return cast(Kept, _store[key])


def clear_cache(key: Hashable | None = None) -> None:
    """Remove the object under a key from the cache, or all objects."""
    with _lock:
        if key is None:
            _store.clear()
        else:
            _store.pop(key, None)
