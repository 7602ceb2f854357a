"""A solver's settings, checked by the same mechanism as layers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

from sparknet.dsl.fields import set_fields
from sparknet.dsl.layer_spec import Content
from sparknet.dsl.net_params import NetParams
from sparknet.dsl.source_code import call_source
from sparknet.errors import SolverError
from sparknet.proto import (
    caffe_pb2,
    check_solver,
    parse_solver,
    read_solver,
    upgrade_solver,
    write_text,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sparknet.dsl.typed import SolverFields, SolverOptions
else:

    class SolverFields:
        """The fields as attributes, which `__getattr__` has."""

        __slots__ = ()


_NETS = {"net": "net_param", "train_net": "train_net_param", "test_net": "test_net_param"}


class SolverParams(Content, SolverFields):
    """How a net learns.

    Keywords are SolverParameter's fields; ``net``, ``train_net`` and
    ``test_net`` take a path or a `NetParams`.  Fields read as attributes.
    Without ``lr_policy`` the rate is "fixed".  ``check=False`` leaves out the checks that Caffe
    makes of fields together.

    >>> solver = SolverParams(net="net.prototxt", base_lr=0.01, momentum=0.9)
    >>> solver.but(base_lr=0.5).base_lr
    0.5
    """

    __slots__ = ("checked",)
    _message_class = caffe_pb2.SolverParameter
    checked: bool

    def __init__(self, *, check: bool = True, **fields: Unpack[SolverOptions]) -> None:
        solver = caffe_pb2.SolverParameter()
        set_fields(solver, {"lr_policy": "fixed", **_with_nets(fields)}, _fail, "")
        self._settle(solver, check)

    def _settle(self, solver: Any, check: bool) -> None:
        if check:
            check_solver(solver)
        self._freeze(solver)
        object.__setattr__(self, "checked", check)

    @classmethod
    def from_proto(cls, solver: caffe_pb2.SolverParameter, check: bool = True) -> SolverParams:
        """Return the settings of a SolverParameter; old ones are upgraded."""
        instance = cls.__new__(cls)
        instance._settle(upgrade_solver(solver), check)
        return instance

    @classmethod
    def from_text(cls, text: str, check: bool = True, name: str = "<text>") -> SolverParams:
        """Return the settings of a solver prototxt's text."""
        return cls.from_proto(parse_solver(text, name), check)

    @classmethod
    def load(cls, path: str | os.PathLike[str], check: bool = True) -> SolverParams:
        """Return the settings of a solver prototxt."""
        return cls.from_proto(read_solver(path), check)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prototxt."""
        write_text(path, self.to_proto())

    def to_source(self) -> str:
        """Python source that binds ``solver`` to equal settings."""
        return call_source("SolverParams", self.to_proto(), "solver", self.checked)

    def but(self, **fields: Unpack[SolverOptions]) -> SolverParams:
        """Return the same settings with some replaced; None resets a field."""
        solver = self.to_proto()
        for name, value in _with_nets(fields).items():
            if name in solver.DESCRIPTOR.fields_by_name:
                solver.ClearField(name)
            set_fields(solver, {name: value}, _fail)
        instance = type(self).__new__(type(self))
        instance._settle(solver, self.checked)
        return instance

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            fields = caffe_pb2.SolverParameter.DESCRIPTOR.fields_by_name
            if name.startswith("_") or name not in fields:
                raise AttributeError(f"SolverParams has no field {name!r}")
            return getattr(self.to_proto(), name)

    def __str__(self) -> str:
        return self.to_prototxt()

    def __repr__(self) -> str:
        return f"<SolverParams {self.type} base_lr={self.base_lr:g}, {self.fingerprint[:8]}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _thaw, (self._bytes, self.checked)


def _thaw(data: bytes, checked: bool) -> SolverParams:
    solver = SolverParams.__new__(SolverParams)
    solver._settle(caffe_pb2.SolverParameter.FromString(data), False)
    object.__setattr__(solver, "checked", checked)
    return solver


def _with_nets(fields: Mapping[str, object]) -> dict[str, object]:
    """``net=NetParams(...)`` goes into net_param, a path stays where it is."""
    messages: dict[str, object] = {}
    for key, value in fields.items():
        several = isinstance(value, list | tuple) and key == "test_net" and len(value) > 0
        items: list[Any] = list(cast(Iterable[Any], value)) if several else [value]
        if key in _NETS and all(isinstance(item, NetParams) for item in items):
            nets = [item.to_proto() for item in items]
            messages[_NETS[key]] = nets if several else nets[0]
        else:
            messages[key] = value
    return messages


def _fail(message: str) -> NoReturn:
    raise SolverError(message)
