"""A builder for every layer type, whose keywords are the fields of the messages that it reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NoReturn

from sparknet.dsl.fields import (
    EXTRA,
    KNOWN,
    OWN,
    default_text,
    default_tops,
    option_fields,
    set_field,
    set_fields,
    short_repr,
)
from sparknet.dsl.layer_spec import LayerSpec, blob_names
from sparknet.errors import LayerError
from sparknet.layers import LAYERS
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean

Builder = Callable[..., LayerSpec]

COMMON = ("loss_weight", "param", "propagate_down", "include", "exclude", "phase")
"""LayerParameter's fields that apply to any type."""
SYNONYMS = {
    "filters": "num_output",
    "kernel": "kernel_size",
    "num_filters": "num_output",
    "out_channels": "num_output",
    "padding": "pad",
    "strides": "stride",
    "units": "num_output",
}
"""Other libraries' words (SparkNet's among them) for Caffe's fields."""


def build(
    type_name: str,
    name: str,
    bottoms: object = (),
    *,
    tops: object = None,
    in_place: bool = False,
    lr_mult: object = None,
    decay_mult: object = None,
    **options: object,
) -> LayerSpec:
    """Return the layer, every keyword checked; see the builders' own docstrings."""

    def fail(message: str) -> NoReturn:
        raise LayerError(str(name), message)

    if not isinstance(name, str):
        fail(f"name: {short_repr(name)} is not a string")
    parameter: Any = caffe_pb2.LayerParameter()
    if name:
        parameter.name = name
    if type_name:
        set_field(parameter, KNOWN["type"], type_name, fail)
    names = blob_names(name, "bottom", options.pop("bottom", bottoms))
    set_field(parameter, KNOWN["bottom"], names, fail)
    tops = _tops(type_name, name, names, options.pop("top", tops), in_place, fail)
    set_field(parameter, KNOWN["top"], tops, fail)
    _set_multipliers(parameter, options, lr_mult, decay_mult, fail)
    _set_options(parameter, type_name, options, fail)
    missing = parameter.FindInitializationErrors()
    if missing:
        fail(f"{missing[0]} is required")
    return LayerSpec(parameter)


def _tops(
    type_name: str, name: str, bottoms: list[str], tops: object, in_place: bool, fail: Any
) -> list[str]:
    if not isinstance(in_place, bool):
        fail(f"in_place: {short_repr(in_place)} is not a bool")
    if not in_place:
        return default_tops(type_name, name) if tops is None else blob_names(name, "top", tops)
    if tops is not None:
        fail("in_place and tops exclude each other")
    if not bottoms:
        fail("in_place needs a bottom")
    return bottoms[:1]


def _set_multipliers(
    parameter: Any, options: Mapping[str, object], lr_mult: object, decay_mult: object, fail: Any
) -> None:
    """``lr_mult=[1, 2]`` stands for ``param=[dict(lr_mult=1), dict(lr_mult=2)]``."""
    multipliers = {"lr_mult": lr_mult, "decay_mult": decay_mult}
    for key, value in multipliers.items():
        if value is None:
            continue
        if options.get("param") is not None:
            fail(f"{key} and param exclude each other")
        values = list(value) if isinstance(value, list | tuple) else [value]
        while len(parameter.param) < len(values):
            parameter.param.add()
        for spec, item in zip(parameter.param, values, strict=False):
            set_fields(spec, {key: item}, fail)


def _set_options(parameter: Any, type_name: str, options: Mapping[str, object], fail: Any) -> None:
    flat = option_fields(type_name)
    for key, value in options.items():
        if value is None and (key in flat or key in KNOWN):
            continue
        if key in flat:
            group, field = flat[key]
            target = getattr(parameter, group)
            target.SetInParent()
            set_field(target, field, value, fail)
        elif key in KNOWN and key not in OWN:
            set_field(parameter, KNOWN[key], value, fail)
        else:
            fail(f"{type_name or 'a layer'} has no field {short_repr(key)}{_hint(key, flat)}")


def _hint(key: str, flat: Mapping[str, object]) -> str:
    """Return the keyword that was meant, where there is a likely one."""
    if SYNONYMS.get(key) in flat:
        return f"; did you mean '{SYNONYMS[key]}'?"
    return did_you_mean(key, [*flat, *EXTRA, "bottoms", *(k for k in KNOWN if k not in OWN)])


def CaffeLayer(name: str, bottoms: object = (), *, type: str, **options: object) -> LayerSpec:  # noqa: N802
    """Return a layer of any type, known here or not: ``CaffeLayer("x", ["y"], type="MyLayer")``.

    Options go by LayerParameter's fields, e.g. ``permute_param=dict(order=[0, 2, 3, 1])``;
    a type that sparknet knows takes its flattened options too."""
    return build(type, name, bottoms, **options)  # type: ignore[arg-type]


@cache
def builder(type_name: str) -> Builder:
    """Return the builder of a type, with a signature and docstring from its descriptors."""

    def make_layer(name: str, bottoms: object = (), **options: object) -> LayerSpec:
        return build(type_name, name, bottoms, **options)  # type: ignore[arg-type]

    make_layer.__name__ = make_layer.__qualname__ = type_name
    make_layer.__module__ = "sparknet.dsl"
    make_layer.__doc__ = _docstring(type_name)
    make_layer.__signature__ = _signature(type_name)  # type: ignore[attr-defined]
    return make_layer


def _signature(type_name: str) -> inspect.Signature:
    parameter, kinds = inspect.Parameter, inspect.Parameter
    own = [*option_fields(type_name), *EXTRA, *COMMON]
    return inspect.Signature(
        [
            parameter("name", kinds.POSITIONAL_OR_KEYWORD, annotation="str"),
            parameter("bottoms", kinds.POSITIONAL_OR_KEYWORD, default=()),
            *(
                parameter(key, kinds.KEYWORD_ONLY, default=False if key == "in_place" else None)
                for key in own
            ),
            parameter("groups", kinds.VAR_KEYWORD),
        ],
        return_annotation=LayerSpec,
    )


def _docstring(type_name: str) -> str:
    layer = LAYERS[type_name]
    text = inspect.cleandoc(layer.__doc__ or f"Caffe's {type_name} layer.")
    lines = [text, "", f"Takes {layer.bottoms} bottom(s), gives {layer.tops} top(s)."]
    group = None
    for key, (kind, field) in option_fields(type_name).items():
        if kind != group:
            group = kind
            lines += ["", f"{group}:"]
        lines.append(f"    {key}: {default_text(field)}")
    lines += ["", "every layer:", "    tops: names; the layer's own name where not given"]
    lines += ["    in_place: bool = False; the first bottom is the top"]
    lines += ["    lr_mult, decay_mult: one number per parameter, in place of param"]
    lines += [f"    {key}: {default_text(KNOWN[key])}" for key in COMMON]
    lines += ["    any other field of LayerParameter, e.g. transform_param=dict(...)"]
    return "\n".join(lines)
