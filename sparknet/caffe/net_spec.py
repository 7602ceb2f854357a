"""`NetSpec`, `layers` as L, `params` as P: nets as expressions (python/caffe/net_spec.py)."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from sparknet.caffe.optional_modules import protobuf, six
from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2
from sparknet.proto.message_fields import is_repeated
from sparknet.proto.suggest import did_you_mean


class UnknownFieldError(SpecError, AttributeError):
    """A field, option or enum value that does not exist."""


class FieldValueError(SpecError, TypeError):
    """A value that its field cannot hold."""


def assign_proto(proto: Any, name: str, val: Any) -> None:
    """Assign `val` to the field `name`: a dict to a message, a list to a repeated field."""
    assign(proto, name, val, proto.DESCRIPTOR.name)


def assign(proto: Any, name: str, value: Any, who: str) -> None:
    """`assign_proto` whose error messages begin with `who`."""
    fields = proto.DESCRIPTOR.fields_by_name
    if name not in fields:
        hint = did_you_mean(name, list(fields))
        raise UnknownFieldError(f"{who}: {proto.DESCRIPTOR.name} has no field '{name}'{hint}")
    if isinstance(value, (tuple, np.ndarray)):
        value = list(value)
    field = fields[name]
    if is_repeated(field):
        _extend(proto, field, value if isinstance(value, list) else [value], who)
    elif isinstance(value, list):
        raise FieldValueError(f"{who}: '{name}' takes one value, not a list of {len(value)}")
    elif field.message_type is not None:
        _fill(getattr(proto, name), value, f"{who}: '{name}'")
    else:
        _checked(lambda: setattr(proto, name, value), name, value, who)


def _extend(proto: Any, field: Any, values: list[Any], who: str) -> None:
    target = getattr(proto, field.name)
    if field.message_type is None:
        _checked(lambda: target.extend(values), field.name, values, who)
        return
    for value in values:
        _fill(target.add(), value, f"{who}: '{field.name}'")


def _fill(message: Any, value: Any, who: str) -> None:
    if isinstance(value, type(message)):
        message.CopyFrom(value)
        return
    if not isinstance(value, Mapping):
        kind = message.DESCRIPTOR.name
        raise FieldValueError(f"{who} takes a dict of {kind}'s fields, not {value!r}")
    for key, item in value.items():
        assign(message, key, item, who)


def _checked(store: Any, name: str, value: Any, who: str) -> None:
    try:
        store()
    except (TypeError, ValueError) as error:
        raise FieldValueError(f"{who}: '{name}' cannot be {value!r} ({error})") from None


__all__ = [
    "Counter",
    "Function",
    "Layers",
    "NetSpec",
    "OrderedDict",
    "Parameters",
    "Top",
    "assign_proto",
    "caffe_pb2",
    "layers",
    "param_name_dict",
    "params",
    "protobuf",
    "six",
    "to_proto",
]


class NoSuchTopError(SpecError, KeyError, AttributeError):
    """A NetSpec was asked for a name that nothing was assigned to."""

    def __str__(self) -> str:
        return str(self.args[0])


@cache
def _param_names() -> dict[str, str]:
    suffix = "_param"
    fields = caffe_pb2.LayerParameter.DESCRIPTOR.fields
    return {
        field.message_type.name.removesuffix("Parameter"): field.name.removesuffix(suffix)
        for field in fields
        if field.name.endswith(suffix) and field.message_type is not None
    }


def param_name_dict() -> dict[str, str]:
    """Layer type → the stem of its options' field: ``InnerProduct`` → ``inner_product``."""
    return dict(_param_names())


class Top:
    """One output blob of a `Function`."""

    def __init__(self, fn: Function, n: int) -> None:
        self.fn = fn
        self.n = n

    def to_proto(self) -> caffe_pb2.NetParameter:
        """Return the net of every layer that this blob needs."""
        return to_proto(self)

    def _update(self, params: Mapping[str, Any]) -> None:
        self.fn._update(params)


class Function:
    """A layer: its type, the tops it reads, and its options."""

    def __init__(self, type_name: str, inputs: tuple[Top, ...], params: dict[str, Any]) -> None:
        for index, bottom in enumerate(inputs):
            if not isinstance(bottom, Top):
                raise FieldValueError(
                    f"{type_name} input {index} is not a Top (type is {type(bottom)})"
                )
        self.type_name = type_name
        self.inputs = inputs
        self.params = params
        self.ntop: int = params.pop("ntop", 1)
        self.in_place: bool = params.pop("in_place", False)
        self.tops = tuple(Top(self, n) for n in range(self.ntop))

    def _update(self, params: Mapping[str, Any]) -> None:
        self.params.update(params)


class _Writer:
    """Collects the layers of a net, each after the layers that it reads."""

    def __init__(self, names: Mapping[Top | Function, str]) -> None:
        self.names = dict(names)
        self.counts: Counter[str] = Counter()
        self.layers: dict[Function, caffe_pb2.LayerParameter] = {}

    def visit(self, fn: Function) -> None:
        pending = [(fn, iter(fn.inputs))]
        open_ = {fn}
        while pending:
            current, inputs = pending[-1]
            source = next((top.fn for top in inputs if top.fn not in self.layers), None)
            if source is None:
                pending.pop()
                open_.discard(current)
                if current not in self.layers:
                    self.layers[current] = self.write(current)
            elif source in open_:
                raise SpecError(f"a {source.type_name} layer takes its own output as an input")
            else:
                pending.append((source, iter(source.inputs)))
                open_.add(source)

    def write(self, fn: Function) -> caffe_pb2.LayerParameter:
        layer = caffe_pb2.LayerParameter()
        layer.type = fn.type_name
        layer.bottom.extend(self.layers[top.fn].top[top.n] for top in fn.inputs)
        if fn.in_place:
            layer.top.extend(layer.bottom)
        else:
            layer.top.extend([self.name(top, fn) for top in fn.tops])
        layer.name = (
            self.names[fn] if fn in self.names else self.name(fn.tops[0] if fn.tops else fn, fn)
        )
        for name, value in fn.params.items():
            _set_option(layer, name, value)
        return layer

    def name(self, key: Top | Function, fn: Function) -> str:
        if key not in self.names:
            self.counts[fn.type_name] += 1
            self.names[key] = f"{fn.type_name}{self.counts[fn.type_name]}"
        return self.names[key]

    def net(self) -> caffe_pb2.NetParameter:
        net = caffe_pb2.NetParameter()
        net.layer.extend(self.layers.values())
        return net


def _set_option(layer: caffe_pb2.LayerParameter, name: str, value: Any) -> None:
    """Set a field of the layer (``…param``), or else an option of its type, if it has it."""
    who = f"layer '{layer.name}'"
    stem = None if name.endswith("param") else _param_names().get(layer.type)
    if stem is not None:
        options = getattr(layer, f"{stem}_param")
        if name in options.DESCRIPTOR.fields_by_name:
            assign(options, name, value, who)
            return
    if name not in layer.DESCRIPTOR.fields_by_name:
        raise UnknownFieldError(
            f"{who}: {layer.type} has no option '{name}'{_hint(layer, stem, name)}"
        )
    assign(layer, name, value, who)


def _hint(layer: caffe_pb2.LayerParameter, stem: str | None, name: str) -> str:
    from sparknet.layers import LAYERS

    fields = list(layer.DESCRIPTOR.fields_by_name)
    if stem is not None:
        fields += list(getattr(layer, f"{stem}_param").DESCRIPTOR.fields_by_name)
    else:
        field = LAYERS[layer.type].field if layer.type in LAYERS else None
        if field is not None and name in getattr(layer, field).DESCRIPTOR.fields_by_name:
            return f": write {field}=dict({name}=...)"
    return did_you_mean(name, fields)


def to_proto(*tops: Top | Function) -> caffe_pb2.NetParameter:
    """Return the net of every layer that `tops` need, with automatic names."""
    writer = _Writer({})
    for top in tops:
        writer.visit(_function(top, "an argument of to_proto"))
    return writer.net()


def _function(value: object, what: str) -> Function:
    if isinstance(value, Top):
        return value.fn
    if isinstance(value, Function):
        return value
    count = f" of {len(value)}" if isinstance(value, (tuple, list)) else ""
    raise FieldValueError(f"{what} is a {type(value).__name__}{count}, not one Top")


class NetSpec:
    """Tops under the names that the net's blobs shall have.

    Attribute and item access are the same; any string can be a name."""

    tops: dict[str, Top | Function]

    def __init__(self) -> None:
        object.__setattr__(self, "tops", {})

    def __setattr__(self, name: str, value: Top | Function) -> None:
        self.tops[name] = value

    def __getattr__(self, name: str) -> Any:
        if name == "tops" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return self[name]

    def __setitem__(self, name: str, value: Top | Function) -> None:
        self.tops[name] = value

    def __getitem__(self, name: str) -> Any:
        if name not in self.tops:
            raise NoSuchTopError(
                f"the net has no top '{name}'{did_you_mean(name, list(self.tops))}"
            )
        return self.tops[name]

    def __delattr__(self, name: str) -> None:
        del self[name]

    def __delitem__(self, name: str) -> None:
        self[name]
        del self.tops[name]

    def keys(self) -> list[str]:
        return list(self.tops)

    def vals(self) -> list[Top | Function]:
        return list(self.tops.values())

    def update(self, name: str, params: Mapping[str, Any]) -> None:
        """Set options of the layer that makes the top `name`."""
        self[name]._update(params)

    def to_proto(self) -> caffe_pb2.NetParameter:
        """Return the net of every assigned top and all that these need."""
        functions = [_function(top, f"the top '{name}'") for name, top in self.tops.items()]
        writer = _Writer({top: name for name, top in self.tops.items()})
        for fn in functions:
            writer.visit(fn)
        return writer.net()


class Layers:
    """``Layers().Convolution(bottom, kernel_size=3)`` is a top; so for every layer type."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def layer_fn(*args: Top, **kwargs: Any) -> Function | Top | tuple[Top, ...]:
            fn = Function(name, args, kwargs)
            if fn.ntop == 0:
                return fn
            return fn.tops[0] if fn.ntop == 1 else fn.tops

        return layer_fn


class _Enums:
    def __init__(self, name: str) -> None:
        self._message = getattr(caffe_pb2, f"{name}Parameter", None)
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._message is None:
            raise UnknownFieldError(f"no message {self._name}Parameter{_message_hint(self._name)}")
        values = self._message.DESCRIPTOR.enum_values_by_name
        if name not in values:
            hint = did_you_mean(name, list(values))
            raise UnknownFieldError(f"{self._name}Parameter has no value '{name}'{hint}")
        return values[name].number


def _message_hint(name: str) -> str:
    messages = [name for name in dir(caffe_pb2) if name.endswith("Parameter")]
    return did_you_mean(f"{name}Parameter", messages)


class Parameters:
    """``Parameters().Pooling.MAX`` is the number of an enum value of PoolingParameter."""

    def __getattr__(self, name: str) -> _Enums:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Enums(name)


layers = Layers()
params = Parameters()
