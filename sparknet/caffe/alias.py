"""``import caffe`` means `sparknet.caffe`: for programs written for pycaffe.

::

    with alias.installed():
        import caffe
        from caffe.proto import caffe_pb2

`install` and `uninstall` do the same without a block.  The modules are the very same objects
under both names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from sparknet.errors import SparkNetError

ALIAS, HOME = "caffe", "sparknet.caffe"


class CaffeImportedError(SparkNetError, ImportError):
    """Another module named caffe is in this process."""


class _Loader(Loader):
    """Hands out the home module; its own spec stays its own."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.home)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _aliased(fullname):
            return None
        home = HOME + fullname[len(ALIAS) :]
        found = find_spec(home)
        if found is None:
            return None
        spec = ModuleSpec(fullname, _Loader(home), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec


_finder = _Finder()
_holders = 0


def _aliased(name: str) -> bool:
    return name == ALIAS or name.startswith(f"{ALIAS}.")


def install() -> None:
    """Make ``import caffe`` mean `sparknet.caffe`; calls nest."""
    global _holders
    loaded = sys.modules.get(ALIAS)
    if loaded is not None and loaded is not sys.modules.get(HOME):
        where = getattr(loaded, "__file__", None) or "no file"
        raise CaffeImportedError(
            f"caffe is already imported from {where}: 'import caffe' cannot mean sparknet.caffe"
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _holders += 1


def uninstall() -> None:
    """Undo one `install`; after the last one ``import caffe`` means what it meant before."""
    global _holders
    if _holders == 0:
        return
    _holders -= 1
    if _holders:
        return
    sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if _aliased(name)]:
        del sys.modules[name]


@contextmanager
def installed() -> Iterator[None]:
    """A block in which ``import caffe`` means `sparknet.caffe`."""
    install()
    try:
        yield
    finally:
        uninstall()
