"""``import caffe`` means `sparknet.caffe`: for programs written for pycaffe.

::

    with alias.installed():
        import caffe
        from caffe.proto import caffe_pb2

`install` and `uninstall` do the same without a block.  The modules are the very same objects
under both names.  What this package does not have is looked for in the folders named caffe on
``sys.path``: a fork's own ``caffe.model_libs`` is found there and shadows nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType

from sparknet.errors import SparkNetError

ALIAS, HOME = "caffe", "sparknet.caffe"


class CaffeImportedError(SparkNetError, ImportError):
    """Another module named caffe is in this process."""


class _Loader(Loader):
    """Returns the home module, whose own spec stays as it was."""

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
        if fullname.startswith(f"{HOME}."):
            return _forks(fullname)
        if not _aliased(fullname):
            return None
        home = HOME + fullname[len(ALIAS) :]
        source = _ours(home)
        if source is None:
            _look_elsewhere(fullname.rpartition(".")[0])
            return None
        spec = ModuleSpec(fullname, _Loader(home), origin=source.origin)
        spec.submodule_search_locations = source.submodule_search_locations
        return spec


def _ours(home: str) -> ModuleSpec | None:
    """Return the spec of a module of this package itself, though its paths are extended."""
    if home == HOME:
        return find_spec(home)
    parent = sys.modules.get(home.rpartition(".")[0])
    return PathFinder.find_spec(home, parent.__path__[:1]) if parent is not None else None


def _forks(name: str) -> ModuleSpec | None:
    """Return a fork's module by its name in this package (``from caffe import model_libs``)."""
    if _ours(name) is not None:
        return None
    alias = ALIAS + name[len(HOME) :]
    _look_elsewhere(alias.rpartition(".")[0])
    parent = sys.modules.get(name.rpartition(".")[0])
    if parent is None or PathFinder.find_spec(alias, parent.__path__[1:]) is None:
        return None
    return ModuleSpec(name, _Loader(alias))


def _look_elsewhere(package: str) -> None:
    """Extend a package by the folders of its name on ``sys.path``, a fork's ``python/caffe``."""
    module = sys.modules.get(HOME + package[len(ALIAS) :])
    if module is None:
        return
    inside = package.replace(".", os.sep)
    for entry in sys.path:
        folder = os.path.join(entry or os.curdir, inside)  # noqa: PTH118 - entries are strings
        if folder not in module.__path__ and os.path.isdir(folder):  # noqa: PTH112
            module.__path__.append(folder)


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
    for name in sorted(name for name in sys.modules if _aliased(name)):
        _forget(name, sys.modules.pop(name))


def _forget(name: str, module: ModuleType) -> None:
    """Remove a fork's modules, and the folders where they were found."""
    home = HOME + name[len(ALIAS) :]
    if not _aliased(module.__name__):
        if hasattr(module, "__path__"):
            del module.__path__[1:]
        return
    sys.modules.pop(home, None)
    parent, _, own = home.rpartition(".")
    if vars(sys.modules.get(parent, module)).get(own) is module:
        delattr(sys.modules[parent], own)


@contextmanager
def installed() -> Iterator[None]:
    """Make ``import caffe`` mean `sparknet.caffe` within a block."""
    install()
    try:
        yield
    finally:
        uninstall()
