"""Strategies: how workers synchronise, one file for each."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules
from typing import Any

from sparknet.errors import SettingError
from sparknet.proto.suggest import did_you_mean
from sparknet.training.strategies.all_reduce import AllReduce
from sparknet.training.strategies.auto import Auto
from sparknet.training.strategies.averaging import Averaging
from sparknet.training.strategies.diloco import DiLoCo
from sparknet.training.strategies.downpour import Downpour
from sparknet.training.strategies.dynamic_averaging import DynamicAveraging
from sparknet.training.strategies.elastic_averaging import ElasticAveraging
from sparknet.training.strategies.outer import BMUF, SlowMo
from sparknet.training.strategies.strategy import Round, State, Strategy

__all__ = [
    "BMUF",
    "STRATEGIES",
    "AllReduce",
    "Auto",
    "Averaging",
    "DiLoCo",
    "Downpour",
    "DynamicAveraging",
    "ElasticAveraging",
    "Round",
    "SlowMo",
    "State",
    "Strategy",
    "make_strategy",
]


def _kinds(base: Any) -> Iterator[type[Strategy]]:
    """Yield the strategies of the room's files, which are those with a name of their own."""
    for kind in base.__subclasses__():
        if "name" in vars(kind):
            yield kind
        yield from _kinds(kind)


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
STRATEGIES = {kind.name: kind for kind in sorted(_kinds(Strategy), key=attrgetter("name"))}


def make_strategy(chosen: str | Strategy, **settings: Any) -> Strategy:
    """Return a strategy by its name; one that is made already, as it is."""
    if isinstance(chosen, Strategy):
        return chosen
    if not isinstance(chosen, str):
        raise SettingError(f"strategy must be a name or a strategy, not {chosen!r}")
    if chosen not in STRATEGIES:
        raise SettingError(f"there is no strategy '{chosen}'{_hint(chosen, list(STRATEGIES))}")
    kind = STRATEGIES[chosen]
    for name in settings:
        if name not in kind.setting_names():
            hint = _hint(name, kind.setting_names())
            raise SettingError(f"strategy '{chosen}' has no setting '{name}'{hint}")
    return kind(**settings)


def _hint(name: str, known: list[str]) -> str:
    return did_you_mean(name, known) or f" (there are: {', '.join(sorted(known))})"
