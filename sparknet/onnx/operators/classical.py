"""Operators of ai.onnx.ml that are linear, and labels: what scikit-learn's pipelines put around
a net."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.onnx.netlist import LARGEST, TINY, Computed
from sparknet.onnx.operators.arithmetic import combine
from sparknet.onnx.operators.matrices import linear
from sparknet.onnx.operators.picking import PLACES, first_places
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

ML = "ai.onnx.ml."


@reads(f"{ML}Scaler")
def scaler(step: Step) -> Outputs:
    """(x - offset) · scale, for each feature or all."""
    x = rows(step)
    offset, scale = (_numbers(step, name, x.shape[-1]) for name in ("offset", "scale"))
    moved = combine(step, "Sub", x, offset, part="moved")
    return combine(step, "Mul", moved, scale)


@reads(f"{ML}Normalizer")
def normalizer(step: Step) -> Outputs:
    """Rows over their sum of sizes, or over their length; zeros stay."""
    x, norm = rows(step), str(step.attribute("norm", "MAX"))
    kinds = {"L1": ("ASUM", -1.0), "L2": ("SUMSQ", -0.5)}
    if norm not in kinds:
        step.refuse(f"its norm is '{norm}', which no layer computes: L1 and L2 are read")
    kind, power = kinds[norm]
    total = step.layer("Reduction", [x], part="total", operation=kind, axis=1)
    least = step.layer("Clip", [total], part="least", min=TINY, max=LARGEST)
    factor = step.layer("Power", [least], part="factor", power=power)
    return step.layer("Scale", [x, factor], axis=0)


@reads(f"{ML}LinearRegressor")
def regressor(step: Step) -> Outputs:
    if step.attribute("post_transform", "NONE") != "NONE":
        step.refuse(f"its post_transform is '{step.attribute('post_transform')}'")
    return _linear(step, rows(step), int(step.attribute("targets", 1)), None)


@reads(f"{ML}LinearClassifier")
def classifier(step: Step) -> Outputs:
    """The class of the largest score, and the scores."""
    x, labels = rows(step), step.attribute("classlabels_ints")
    strings = step.attribute("classlabels_strings")
    classes = len(labels or strings or ())
    after = str(step.attribute("post_transform", "NONE"))
    kinds = {"NONE": None, "SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}
    if classes < 2 or after not in kinds:
        step.refuse(f"it has {classes} classes, and its post_transform is '{after}'")
    kind = kinds[after]
    scores = _linear(step, x, classes, "scores" if kind else "plain")
    made = step.layer(kind, [scores], part="shares") if kind else scores
    return labelled(step, scores, made, labels)


def labelled(step: Step, raw: Computed, scores: Computed, labels: Sequence[int] | None) -> Outputs:
    """The label of the largest raw score, if it is read, and the scores."""
    if not step.is_read(0):
        return [np.zeros(0, np.float32), scores]
    if not labels:
        step.refuse("its classes are strings, which no blob holds: let the graph give the scores")
    records, classes = raw.shape
    best = step.reshape(first_places(step, raw, 1, "best"), (records,), part="best")
    if list(labels) != list(range(classes)):
        table = np.asarray(labels, np.float32).reshape(-1, 1)
        named = step.layer(
            "Embed", [best], [table], part="named", num_output=1, input_dim=classes, bias_term=False
        )
        best = step.reshape(named, (records,), part="label")
    best.dtype = PLACES
    # Scores that somebody has read would be no output of the net.
    return [best, step.layer("Power", [raw], part="scored") if scores is raw else scores]


@reads(f"{ML}ZipMap")
def zip_map(step: Step) -> Outputs:
    step.refuse("it makes maps, which no blob holds: export with options={'zipmap': False}")


def rows(step: Step) -> Computed:
    x = step.blob()
    if len(x.shape) != 2:
        step.refuse(f"it takes rows of features, not {list(x.shape)}")
    return x


def _numbers(step: Step, name: str, features: int) -> Array:
    found = np.asarray(step.attribute(name, []), np.float32)
    if found.size not in (1, features):
        step.refuse(f"it has {found.size} numbers of {name} for {features} features")
    return found


def _linear(step: Step, x: Computed, outputs: int, part: str | None) -> Computed:
    weights = np.asarray(step.attribute("coefficients", []), np.float32)
    bias: Any = step.attribute("intercepts")
    if weights.size != outputs * x.shape[-1] or len(bias or [0] * outputs) != outputs:
        step.refuse(f"it has {weights.size} coefficients for {x.shape[-1]} features")
    row = None if not bias else np.asarray(bias, np.float32)
    return linear(step, x, weights.reshape(outputs, -1).T, row, part)
