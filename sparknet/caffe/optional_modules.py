"""Third-party modules that programs reach through pycaffe: ``caffe.io.skimage``."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from sparknet.errors import SparkNetError


class NotInstalledError(SparkNetError, ImportError):
    """A program uses a module that is not installed."""


class OptionalModule(ModuleType):
    """A module that is imported when the first of its names is asked for."""

    def __init__(self, name: str, package: str) -> None:
        super().__init__(name)
        self.__package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        home = self._import(self.__name__)
        try:
            return getattr(home, name)
        except AttributeError:
            return self._submodule(home, name)

    def _import(self, name: str) -> ModuleType:
        try:
            return import_module(name)
        except ImportError:
            raise NotInstalledError(
                f"the program uses the module '{self.__name__}' through pycaffe's: "
                f"run pip install {self.__package}"
            ) from None

    def _submodule(self, home: ModuleType, name: str) -> ModuleType:
        try:
            return import_module(f"{self.__name__}.{name}")
        except ImportError:
            raise AttributeError(f"module {home.__name__!r} has no attribute {name!r}") from None


pydot = OptionalModule("pydot", "'sparknet[draw]'")
protobuf = OptionalModule("google.protobuf", "protobuf")
scipy = OptionalModule("scipy", "scipy")
six = OptionalModule("six", "six")
skimage = OptionalModule("skimage", "scikit-image")


def resize(*args: Any, **kwargs: Any) -> Any:
    """scikit-image's `skimage.transform.resize`; `caffe.io.resize_image` does without it."""
    return skimage.transform.resize(*args, **kwargs)


def zoom(*args: Any, **kwargs: Any) -> Any:
    """scipy's `scipy.ndimage.zoom`; `caffe.io.resize_image` does without it."""
    return scipy.ndimage.zoom(*args, **kwargs)
