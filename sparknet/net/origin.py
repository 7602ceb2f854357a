"""Origin: what a Net is built from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeGuard

from sparknet.caffe.solvers.nets import weight_files
from sparknet.errors import SpecError, WeightsError, warn
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.native import NDArray
from sparknet.net.description import Description, NetSource, SolverMessage, describe
from sparknet.onnx import is_onnx, open_model
from sparknet.onnx.inputs import Axes, Shapes, refuse_axes
from sparknet.onnx.source import labels_of, preprocessing_of
from sparknet.proto import Model
from sparknet.weights import WeightCollection

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Origin:
    """The description of the nets, and where the weights come from until a net has them."""

    description: Description
    files: tuple[str, ...] = ()
    """Of weights, each over those before it."""
    models: tuple[tuple[str, Model], ...] = ()
    """Files among them that have been read already, with their paths."""
    weights: WeightCollection | None = None
    flat: NDArray | None = None
    """The buffer of all weights that the net is built on."""
    preprocessing: Preprocessing | None = None
    labels: tuple[str, ...] = ()

    @property
    def has_weights(self) -> bool:
        return bool(self.files) or self.weights is not None or self.flat is not None

    def used(self, weights: WeightCollection | None = None, flat: NDArray | None = None) -> Origin:
        """Once a net has the weights, or for another that has these."""
        return replace(self, files=(), models=(), weights=weights, flat=flat)

    def with_solver(self, solver: SolverMessage) -> Origin:
        return replace(self, description=self.description.with_solver(solver))


def find_origin(
    source: NetSource,
    weights: StrPath | WeightCollection | NDArray | None,
    preprocessing: Preprocessing | None,
    *,
    phase: int | None,
    level: int,
    stages: Sequence[str],
    trusted: bool | None,
    unknown: Literal["refuse", "skip"],
    dialect: str | None,
    shapes: Shapes | None,
    batch_axis: Axes | None,
) -> Origin:
    """Return what a Net is made of; the file of a net with its weights is read once."""
    model, labels = None, tuple[str, ...]()
    if _is_model(source):
        path, trust = os.fspath(source), trusted
    elif isinstance(weights, (str, os.PathLike)) and is_onnx(weights):
        path, trust = os.fspath(weights), None
    else:
        path, trust = "", None
        refuse_axes("the net", shapes, batch_axis)
    if path:
        model = open_model(path, shapes=shapes, batch_axis=batch_axis, trusted=trust)
        preprocessing = preprocessing or preprocessing_of(model, path)
        labels = labels_of(model, path)
    described = model.net if model is not None and _is_model(source) else source
    description = describe(described, phase, level, stages, trusted, unknown, dialect)
    solver = description.solver
    files = [] if solver is None else weight_files(solver)
    if isinstance(weights, NDArray):
        if solver is not None:
            raise SpecError("a buffer of weights is for a net without a solver")
        description = replace(description, train=None)  # what learns has weights of its own
    elif weights is None:
        files += [path] if path else []
    elif not isinstance(weights, WeightCollection):
        files.append(os.fspath(weights))
    return Origin(
        description,
        tuple(files),
        () if model is None else ((path, model),),
        weights if isinstance(weights, WeightCollection) else None,
        weights if isinstance(weights, NDArray) else None,
        preprocessing,
        labels,
    )


def _is_model(source: object) -> TypeGuard[StrPath]:
    """Return whether the file of a net holds its weights too."""
    if not isinstance(source, (str, os.PathLike)):
        return False
    return is_onnx(source) or os.fspath(source).endswith(".caffemodel")


class LossWarning(UserWarning):
    """The loss is not finite, and no later one will be."""


def warn_of_loss(loss: float, iteration: int, weights: WeightCollection) -> None:
    """Warn, and name the first layer whose weights are not finite."""
    reason = "the weights are finite"
    try:
        weights.check_finite()
    except WeightsError as error:
        reason = str(error)
    warn(
        f"iteration {iteration}: the loss is {loss:g}, and {reason}; a smaller base_lr or "
        "clip_gradients may help",
        LossWarning,
    )
