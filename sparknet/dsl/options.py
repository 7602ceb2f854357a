"""The options of a layer type: the fields that its builder takes, by the names of keywords."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from keyword import iskeyword
from typing import Any

from sparknet.layers import LAYERS
from sparknet.proto import caffe_pb2

OWN = ("name", "type", "bottom", "top", "blobs")
"""LayerParameter fields that are no keyword of their own."""
EXTRA = ("tops", "in_place", "lr_mult", "decay_mult")
"""Keywords that are no field."""

FOREIGN = ("engine",)
"""Fields that a fork gives a layer, by the name of an option of Caffe's; the option is meant."""
KNOWN: Mapping[str, Any] = {
    name: field
    for name, field in caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name.items()
    if name not in FOREIGN
}


def groups_of(type_name: str) -> tuple[str, ...]:
    """Return the messages of options that a type reads, its own first."""
    layer = LAYERS[type_name]
    return (*((layer.field,) if layer.field else ()), *layer.fields)


@cache
def option_fields(type_name: str) -> dict[str, tuple[str, Any]]:
    """Return a type's keywords: name → (field of LayerParameter, descriptor)."""
    fields: dict[str, tuple[str, Any]] = {}
    if type_name not in LAYERS:
        return fields
    for group in groups_of(type_name):
        for field in KNOWN[group].message_type.fields:
            if not (field.name in KNOWN or field.name in EXTRA or iskeyword(field.name)):
                fields.setdefault(field.name, (group, field))
    return fields


def default_tops(type_name: str, name: str) -> list[str]:
    """Return one top named like the layer, none for types that have none (Silence)."""
    none = type_name in LAYERS and LAYERS[type_name].tops.most == 0
    return [] if none or not name else [name]
