"""The layer types by name; the families' modules are imported when a type is first asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from sparknet.errors import LayerError
from sparknet.layers.layer import CLASSES, Arity, Layer
from sparknet.proto import caffe_pb2
from sparknet.proto.forks import origin
from sparknet.proto.suggest import did_you_mean


class LayerTypes(Mapping[str, type[Layer]]):
    """Layer types by Caffe's type name; packages from outside add theirs by an entry point."""

    def __init__(self) -> None:
        self._loaded: set[str] = set()

    def __getitem__(self, type_name: str) -> type[Layer]:
        self._load("sparknet")
        if type_name not in CLASSES:
            self._load("outside")
        return CLASSES[type_name]

    def __contains__(self, type_name: object) -> bool:
        try:
            return isinstance(type_name, str) and self[type_name] is not None
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        self._load("sparknet")
        self._load("outside")
        return iter(sorted(CLASSES))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _load(self, source: str) -> None:
        if source in self._loaded:
            return
        if source == "sparknet":
            for module in iter_modules([str(Path(__file__).parent)]):
                import_module(f"{__package__}.{module.name}")
        else:
            _load_entry_points()
        self._loaded.add(source)


def _load_entry_points() -> None:
    """Import what installed packages name in the group ``sparknet.layers``."""
    from importlib.metadata import entry_points

    for entry in entry_points(group="sparknet.layers"):
        try:
            entry.load()
        except Exception as error:
            text = (
                f"the layers of '{entry.value}' cannot be loaded: {type(error).__name__}: {error}"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=2)


LAYERS = LayerTypes()


def make(parameter: caffe_pb2.LayerParameter, phase: int) -> Layer:
    """Return the layer that ``parameter`` describes, its bottoms and tops counted."""
    if parameter.type not in LAYERS:
        raise LayerError(parameter.name, _unknown(parameter.type))
    layer = LAYERS[parameter.type](parameter, phase)
    check_counts(layer, len(parameter.bottom), len(parameter.top))
    return layer


def check_counts(layer: Layer, bottoms: int, tops: int) -> None:
    """Caffe: layer.hpp, CheckBlobCounts; after net.cpp has added automatic tops."""
    if layer.is_loss:
        tops = max(tops, layer.tops.least)
    _check_arity(layer, layer.bottoms, bottoms, "bottom")
    _check_arity(layer, layer.tops, tops, "top")
    if layer.tops.like_bottoms and bottoms != tops:
        layer.fail(
            "needs as many tops as bottoms; "
            f"it has {_counted(bottoms, 'bottom')} and {_counted(tops, 'top')}"
        )


def _check_arity(layer: Layer, arity: Arity, blobs: int, what: str) -> None:
    if not arity.accepts(blobs):
        plural = "" if (arity.most or arity.least) == 1 else "s"
        layer.fail(f"takes {arity} {what}{plural}; it has {blobs}")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _unknown(type_name: str) -> str:
    if not type_name:
        return f"has no type; sparknet knows {len(LAYERS)} layer types"
    whose = origin("type", type_name)
    hint = did_you_mean(type_name, LAYERS) or ";"
    return f"unknown type '{type_name}'{whose}{hint} sparknet knows {len(LAYERS)} layer types"
