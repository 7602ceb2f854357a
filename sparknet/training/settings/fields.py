"""A setting: declared once, as a field of a dataclass with its default, check and sentence.

Signatures, `sparknet train`'s flags, the estimator's Params and docs/settings.md are made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any, ParamSpec, TypeVar, cast

from sparknet.errors import ArgumentError, SettingError, SpecError
from sparknet.proto.suggest import did_you_mean
from sparknet.training.settings.kinds import Kind

_KEY = "sparknet"
Given = ParamSpec("Given")
Settings = TypeVar("Settings")
Result = TypeVar("Result")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Setting:
    """What a field says about its values."""

    kind: Kind
    said: str
    """What it means, as one sentence."""
    unit: str
    """What it counts, such as rounds."""
    or_none: bool
    default: Any

    def fault(self, value: object) -> str | None:
        """Return what the value must be and is not."""
        return None if value is None and self.or_none else self.kind.fault(value)

    def line(self, name: str) -> str:
        """Return the setting for people to read."""
        default = "" if self.default is None else f" ({self.default!r} unless given)"
        return f"``{name}``{default}: {self.said}"


def setting(
    default: Value, kind: Kind, said: str, unit: str = "", or_none: bool | None = None
) -> Value:
    """Return a field; None is allowed where it is the default, or with ``or_none``."""
    allowed = default is None if or_none is None else or_none
    description = Setting(kind, said, unit, allowed, default)
    return field(default=default, metadata={_KEY: description})


def metadata_of(base: type, name: str) -> Any:
    """Return what a field of a base says, for a class in which it has no default."""
    return next(one.metadata for one in fields(base) if one.name == name)


def again(base: type, name: str) -> Any:
    """Return a setting of a base, for a class in which it may be given by position."""
    before: Setting = metadata_of(base, name)[_KEY]
    return field(default=before.default, metadata={_KEY: before})


def settings_of(kind: type) -> dict[str, Setting]:
    """Return the settings of a dataclass by name."""
    return {one.name: one.metadata[_KEY] for one in fields(kind) if _KEY in one.metadata}


def values_of(given: object, kind: type[Any]) -> dict[str, Any]:
    """Return the attributes of an object that are fields of ``kind``."""
    return {one.name: getattr(given, one.name) for one in fields(kind)}


def check_settings(given: object) -> None:
    """SettingError if a value is none that the setting can have."""
    for name, description in settings_of(type(given)).items():
        value = getattr(given, name)
        if fault := description.fault(value):
            raise SettingError(f"{name} {fault}, not {value!r}")


def described(kind: type[Settings]) -> type[Settings]:
    """Add the settings to the docstring of a dataclass."""
    kind.__doc__ = documented(cleandoc(kind.__doc__ or ""), kind)
    return kind


GROUPS = {
    "Workers": (
        *("strategy", "workers", "hosts", "min_hosts", "min_workers", "start_wait", "leave_behind"),
        *("restarts", "cluster"),
        *("threads", "precision", "device", "backend", "resources"),
    ),
    "The end": ("steps", "epochs", "seconds", "patience", "diverged"),
    "Validation and events": (
        *("validation", "validate_every", "metric", "metrics", "goal"),
        *("histograms_every", "on_event"),
    ),
    "Snapshots": ("snapshots", "snapshot_every", "keep", "snapshots_needed", "resume"),
    "The net": ("weights", "head", "lr_mult", "shapes", "batch_axis", "dialect"),
    "A module of PyTorch": (
        *("module", "loss", "optimizer", "lr_schedule", "batch_size", "accumulate", "target"),
        *("buffers", "clip_gradients"),
    ),
    "Records": (
        *("columns", "features", "label", "weight_column", "class_weights", "invalid"),
        *("shuffle", "seed"),
    ),
    "The network between workers": (
        *("ports", "deadline", "protection"),
        "start_timeout",
    ),
}
"""Heading in a docstring → the settings below it."""


def documented(text: str, kind: type) -> str:
    """Return a docstring with the settings below their headings."""
    descriptions = settings_of(kind)
    parts = [text]
    grouped = {name for names in GROUPS.values() for name in names}
    others = tuple(name for name in descriptions if name not in grouped)
    for heading, names in {**GROUPS, "Other settings": others}.items():
        lines = [descriptions[name].line(name) for name in names if name in descriptions]
        if lines:
            parts += [f"{heading}:", *lines]
    return "\n\n".join(parts) + "\n"


def called_with(
    kind: Callable[Given, Settings],
) -> Callable[[Callable[[Settings], Result]], Callable[Given, Result]]:
    """Have a function of a dataclass be called with the dataclass's fields as arguments."""
    parameters = signature(kind)

    def decorate(function: Callable[[Settings], Result]) -> Callable[Given, Result]:
        @wraps(function)
        def call(*args: Given.args, **keywords: Given.kwargs) -> Result:
            _check_names(parameters, keywords)
            _check_given(parameters, args, keywords)
            return function(kind(*args, **keywords))

        result = signature(function).return_annotation
        documented_call: Any = call
        documented_call.__signature__ = parameters.replace(return_annotation=result)
        kinds = {name: one.annotation for name, one in parameters.parameters.items()}
        documented_call.__annotations__ = kinds | {"return": result}
        documented_call.__doc__ = documented(cleandoc(function.__doc__ or ""), cast(type, kind))
        return call

    return decorate


def known_keywords(kind: type[Settings]) -> type[Settings]:
    """Have a dataclass refuse keywords that it does not know in a sentence of ours."""
    make: Any = kind.__init__
    parameters = signature(kind)

    @wraps(make)
    def init(self: Settings, *args: Any, **keywords: Any) -> None:
        _check_names(parameters, keywords)
        _check_given(parameters, args, keywords)
        make(self, *args, **keywords)

    setattr(kind, "__init__", init)  # noqa: B010 - mypy refuses it as an assignment
    return kind


def _check_given(known: Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    try:
        known.bind(*args, **keywords)
    except TypeError as error:  # it does not speak of the dataclass
        raise ArgumentError(str(error)) from None


ELSEWHERE = {
    "preprocessing": ": its settings are keywords themselves, as resize=, crop=, mean= and scale="
}
"""Words that are no keyword, and near none that is meant."""


def _check_names(known: Signature, keywords: dict[str, Any]) -> None:
    names = [
        name for name, one in known.parameters.items() if one.kind is not Parameter.VAR_KEYWORD
    ]
    for name in keywords:
        if name not in names:
            near = ELSEWHERE.get(name) or did_you_mean(name, names)
            raise SpecError(f"there is no keyword '{name}'{near}")
