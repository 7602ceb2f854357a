"""Python: a layer that the user wrote."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from sparknet.errors import LayerError, clean
from sparknet.layers.fillers import constant
from sparknet.layers.host import Blobs, Host, HostNode
from sparknet.layers.layer import Layer, Param, Plan, Shape, at_least, layer
from sparknet.layers.user_layer import (
    SUPPLIED,
    BlobVec,
    BoolVec,
    Phase,
    RawBlobVec,
    ShapeBlob,
    UserLayer,
    caffe_importable,
)
from sparknet.proto import caffe_pb2
from sparknet.proto.untrusted import check_trusted


class PythonHost(Host):
    """Runs the object that shape inference made, on real blobs (Caffe: python_layer.hpp)."""

    def __init__(self, node: HostNode, params: BlobVec, seed: int) -> None:
        super().__init__(node, params, seed)
        assert isinstance(node.layer, Python)
        self.instance: Any = node.layer.instance
        for blob, own in zip(params, self.instance.blobs, strict=True):
            blob.data[...] = own.data
        self.instance.blobs = params

    def reshape(self, bottoms: Blobs, tops: Blobs) -> None:
        self._call(lambda: self.instance.reshape(bottoms, tops))

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        self._call(lambda: self.instance.forward(bottoms, tops))

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        self._call(lambda: self.instance.backward(tops, BoolVec(propagate_down), bottoms))

    def _call(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except LayerError:
            raise
        except Exception as error:
            raise blamed(self.node.name, error) from error


@layer("Python", stock=True)
class Python(Layer):
    """``setup`` runs once, ``reshape`` at every `infer`, both on blobs that have a shape only;
    tops that ``reshape`` leaves alone keep their shapes.

    Importing the module runs its code, as in Caffe (python_layer.hpp).  Faster R-CNN's
    ``rpn.proposal_layer``, ``rpn.anchor_target_layer`` and ``rpn.proposal_target_layer`` come with
    sparknet and need not be there; their constants can be given in param_str.  So do DetectNet's
    ``caffe.layers.detectnet.clustering``."""

    host = PythonHost
    field = "python_param"
    bottoms = at_least(0)
    tops = at_least(0)
    works_in_place = True
    plain_options = ("module", "layer", "param_str", "share_in_parallel")

    def __init__(self, parameter: caffe_pb2.LayerParameter, phase: int) -> None:
        super().__init__(parameter, phase)
        self.instance: Any = None
        """The user's object, once `infer` has made it."""
        self._tops: list[Shape] = [() for _ in parameter.top]

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = RawBlobVec(ShapeBlob(shape) for shape in bottoms)
        shared = dict(zip(self.parameter.bottom, bottom, strict=False))
        top = RawBlobVec(
            shared.get(name) or ShapeBlob(shape)
            for name, shape in zip(self.parameter.top, self._tops, strict=True)
        )
        with caffe_importable():
            if self.instance is None:
                instance = self._call(self._make)
                self._call(lambda: instance.setup(bottom, top))
                self.instance = instance
            self._call(lambda: self.instance.reshape(bottom, top))
        self._tops = [tuple(blob.shape) for blob in top]
        if getattr(type(self.instance), "reshape", None) is UserLayer.reshape and () in self._tops:
            self.fail(
                f"{self.options.module}.{self.options.layer} has no reshape(bottom, top), which "
                "gives its tops their shapes"
            )
        learned = list(self.instance.blobs)
        values = {"blobs": tuple(blob.data for blob in learned)}
        return Plan(
            tops=tuple(self._tops),
            params=tuple(Param(tuple(blob.shape), constant()) for blob in learned),
            values=values,
        )

    def _make(self) -> Any:
        options = self.options
        if not options.module or not options.layer:
            self.fail("needs python_param.module and python_param.layer")
        module = self._module(options.module)
        instance = getattr(module, options.layer)(self.parameter)
        if not hasattr(instance, "blobs"):
            instance.blobs = BlobVec()
        instance.param_str = instance.param_str_ = options.param_str
        instance.phase = Phase(self.phase)
        return instance

    def _module(self, name: str) -> ModuleType:
        """Import the user's module, or return what sparknet has in its place (`supplies`)."""
        own = SUPPLIED.get(name)
        if own is None or not self.parameter.untrusted:
            check_trusted(self.parameter, f"to import the module '{clean(name)}'")
            try:
                return importlib.import_module(name)
            except ImportError:
                if own is None:
                    raise
        return own

    def _call(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except LayerError:
            raise
        except Exception as error:
            raise blamed(self.name, error) from error


def blamed(layer: str, error: Exception) -> Exception:
    """Return a LayerError that names the layer and is also of the error's own type."""
    message = f"Python: {type(error).__name__}: {error}"
    kind: type[LayerError]
    try:
        kind = type(type(error).__name__, (LayerError, type(error)), BLAMED)
        return kind(layer, message)
    except TypeError:  # two types whose memory layouts do not go together
        return LayerError(layer, message)


def _init(self: LayerError, layer: str, message: str) -> None:
    Exception.__init__(self, f"layer '{layer}': {message}")
    self.layer = layer


def _str(self: LayerError) -> str:
    return str(self.args[0])


BLAMED: dict[str, Any] = {"__init__": _init, "__str__": _str}
"""Replaces the text of the error's own type; KeyError's, for one, has quotes."""
