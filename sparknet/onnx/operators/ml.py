"""Operators of ai.onnx.ml around a net, from scikit-learn's pipelines: linear ones and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparknet.onnx.netlist import LARGEST, TINY, Computed
from sparknet.onnx.operators.binary import combine
from sparknet.onnx.operators.matrix_products import linear
from sparknet.onnx.operators.reductions import PLACES, first_places
from sparknet.onnx.operators.shapes import joined
from sparknet.onnx.operators.slicing import MOST_PLACES
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
    """Return the class of the largest score, and the scores."""
    x, labels = rows(step), step.attribute("classlabels_ints")
    strings = step.attribute("classlabels_strings")
    classes = len(labels or strings or ())
    after = str(step.attribute("post_transform", "NONE"))
    kinds = {"NONE": None, "SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}
    if classes < 2 or after not in kinds:
        step.refuse(f"it has {classes} classes, and its post_transform is '{after}'")
    kind = kinds[after]
    scores = _linear(step, x, classes, "scores" if kind else "plain")
    shares = step.layer(kind, [scores], part="shares") if kind else scores
    return labelled(step, scores, shares, labels)


def labelled(step: Step, raw: Computed, scores: Computed, labels: Sequence[int] | None) -> Outputs:
    """Return the label of the largest raw score, if it is read, and the scores."""
    if not step.is_read(0):
        return [np.zeros(0, np.float32), scores]
    if not labels:
        step.refuse("its classes are strings, which no blob holds: let the graph give the scores")
    records, classes = raw.shape
    best = step.reshape(first_places(step, raw, 1, "best"), (records,), part="best")
    if list(labels) != list(range(classes)):
        table = np.asarray(labels, np.float32).reshape(-1, 1)
        output = step.layer(
            "Embed", [best], [table], part="named", num_output=1, input_dim=classes, bias_term=False
        )
        best = step.reshape(output, (records,), part="label")
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
    numbers = np.asarray(step.attribute(name, []), np.float32)
    if numbers.size not in (1, features):
        step.refuse(f"it has {numbers.size} numbers of {name} for {features} features")
    return numbers


def _linear(step: Step, x: Computed, outputs: int, part: str | None) -> Computed:
    weights = np.asarray(step.attribute("coefficients", []), np.float32)
    bias: Any = step.attribute("intercepts")
    if weights.size != outputs * x.shape[-1] or len(bias or [0] * outputs) != outputs:
        step.refuse(f"it has {weights.size} coefficients for {x.shape[-1]} features")
    row = None if not bias else np.asarray(bias, np.float32)
    return linear(step, x, weights.reshape(outputs, -1).T, row, part)


_MOST = 1 << 25
"""Numbers of the matrices that say which decisions lead to which leaves: 128 MiB."""
_STEPS = 1 << 21
"""From the root of a tree to all its nodes."""
_TOO_LARGE = (
    "its trees are too large for products of matrices: run it by onnxruntime, or by the library "
    "that grew them"
)
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")


@dataclass
class _Tree:
    """Decisions, which are whether a feature is above a number, and leaves."""

    features: list[int] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)
    """The numbers of the nodes."""
    paths: list[list[tuple[int, bool]]] = field(default_factory=list)
    """For each leaf the decisions above it, and what they must be."""


@reads(f"{ML}TreeEnsembleRegressor")
def tree_regressor(step: Step) -> Outputs:
    aggregate = str(step.attribute("aggregate_function", "SUM"))
    after = str(step.attribute("post_transform", "NONE"))
    if aggregate not in ("SUM", "AVERAGE") or after != "NONE":
        step.refuse(f"its aggregate_function is '{aggregate}', and its post_transform '{after}'")
    outputs = int(step.attribute("n_targets", 1))
    return _summed(step, "target", outputs, _base(step, outputs), aggregate == "AVERAGE", None)


@reads(f"{ML}TreeEnsembleClassifier")
def tree_classifier(step: Step) -> Outputs:
    """Return the label of the largest score, and the scores; one score is the second's."""
    labels = step.attribute("classlabels_int64s")
    classes = len(labels or step.attribute("classlabels_strings") or ())
    after = str(step.attribute("post_transform", "NONE"))
    if classes < 2 or after not in ("NONE", "SOFTMAX", "LOGISTIC"):
        step.refuse(f"it has {classes} classes, and its post_transform is '{after}'")
    ids = {int(one) for one in step.attribute("class_ids", [])}
    kind = {"NONE": None, "SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}[after]
    if classes == 2 and len(ids) == 1:
        if ids != {0}:
            step.refuse("its only score is that of its second class, as no exporter writes it")
        return labelled(step, *_two_of_one(step, kind == "Sigmoid"), labels)
    raw = _summed(step, "class", classes, _base(step, classes), False, "raw" if kind else None)
    scores = step.layer(kind, [raw], part="shares") if kind else raw
    return labelled(step, raw, scores, labels)


def _two_of_one(step: Step, logistic: bool) -> tuple[Computed, Computed]:
    """Return the decision and the scores of two classes with one sum, as onnxruntime."""
    one = _summed(step, "class", 1, _base(step, 1), False, "one")
    shares = min(step.attribute("class_weights", [0.0])) >= 0
    opposite = step.layer("Power", [one], part="opposite", scale=-1.0)
    rest = step.layer("Power", [opposite], part="rest", shift=1.0) if shares else opposite
    raw = joined(step, [rest, one], 1, part="raw" if logistic else None)
    if not logistic:
        return raw, raw
    both = joined(step, [opposite, one], 1, part="both") if shares else raw
    return raw, step.layer("Sigmoid", [both], part="shares")


@reads(f"{ML}TreeEnsemble")
def ensemble(step: Step) -> Outputs:
    step.refuse("no layer does this: export with target_opset={'ai.onnx.ml': 3}")


def _base(step: Step, outputs: int) -> Array:
    base = np.asarray(step.attribute("base_values") or [0.0], np.float32)
    if base.size not in (1, outputs):
        step.refuse(f"it has {base.size} base_values for {outputs} outputs")
    return np.broadcast_to(base, (outputs,))


def _summed(
    step: Step, kind: str, outputs: int, base: Array, mean: bool, part: str | None
) -> Computed:
    """Return what the leaves that each record reaches say, all together."""
    x, trees = rows(step), _trees(step)
    decisions = max(1, *(len(one.features) for one in trees.values()))
    leaves = max(len(one.leaves) for one in trees.values())
    count = len(trees)
    count, decisions, leaves = (
        size + (size % step.batch == 0) for size in (count, decisions, leaves)
    )
    places, product = count * decisions, count * decisions * leaves
    if product > _MOST or places > MOST_PLACES:
        step.refuse(_TOO_LARGE)
    features = np.zeros((count, decisions), np.int64)
    limits = np.full((count, decisions), LARGEST, np.float32)
    leads = np.zeros((count, decisions, leaves), np.float32)
    needed = np.ones((count, 1, leaves), np.float32)
    for number, tree in enumerate(trees.values()):
        features[number, : len(tree.features)] = tree.features
        limits[number, : len(tree.limits)] = tree.limits
        for leaf, path in enumerate(tree.paths):
            needed[number, 0, leaf] = sum(above for _, above in path)
            for decision, above in path:
                leads[number, decision, leaf] = 1 if above else -1
    if features.max() >= x.shape[1]:
        step.refuse(f"it reads feature {features.max()} of {x.shape[1]}")
    picked = step.layer("Gather", [x], part="taken", axis=1, index=features.ravel().tolist())
    apart = step.layer("Bias", [picked], [-limits.ravel()], part="apart", axis=1)
    flags = step.layer("Threshold", [apart], part="decisions", threshold=0.0)
    flags = step.reshape(flags, (x.shape[0], count, decisions), part="trees")
    flags = step.layer("Permute", [flags], part="turned", order=[1, 0, 2])
    flags = step.layer("MatMul", [flags, step.parameter(leads)], part="leads")
    flags = step.layer("Permute", [flags], part="back", order=[1, 0, 2])
    flags = step.reshape(flags, (x.shape[0], count * leaves), part="leaves")
    flags = step.layer("Bias", [flags], [0.5 - needed.ravel()], part="missing", axis=1)
    flags = step.layer("Threshold", [flags], part="reached", threshold=0.0)
    weights = np.zeros((count, leaves, outputs), np.float32)
    _weigh(step, kind, trees, weights)
    if mean:
        weights /= len(trees)
    return linear(step, flags, weights.reshape(-1, outputs), np.array(base, np.float32), part)


def _trees(step: Step) -> dict[int, _Tree]:
    """By their numbers."""
    names = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    columns = [step.attribute(f"nodes_{name}", []) for name in names]
    if len({len(one) for one in columns}) != 1 or not columns[0]:
        step.refuse("its nodes have attributes of several lengths")
    nodes: dict[int, dict[int, list[Any]]] = {}
    for tree, number, *its in zip(*columns, strict=True):
        nodes.setdefault(tree, {})[number] = its
    return {tree: _walked(step, its) for tree, its in nodes.items()}


def _walked(step: Step, nodes: dict[int, list[Any]]) -> _Tree:
    below = {one for mode, *_, yes, no in nodes.values() if mode != "LEAF" for one in (yes, no)}
    roots = [number for number in nodes if number not in below]
    if len(roots) != 1:
        step.refuse(f"a tree of it has {len(roots)} roots")
    tree, visited, steps = _Tree(), set[int](), 0
    pending: list[tuple[int, list[tuple[int, bool]]]] = [(roots[0], [])]
    while pending:
        number, path = pending.pop()
        if number not in nodes or number in visited:
            step.refuse(f"node {number} of a tree is missing, or is reached twice")
        visited.add(number)
        steps += len(path)
        if steps > _STEPS:
            step.refuse(_TOO_LARGE)
        mode, feature, value, yes, no = nodes[number]
        if mode == "LEAF":
            tree.leaves.append(number)
            tree.paths.append(path)
            continue
        if mode not in _MODES:
            step.refuse(f"a decision of it is '{mode}', which no layer makes")
        limit = np.float32(value)
        if mode in ("BRANCH_LT", "BRANCH_GTE"):  # not below it is above the number before
            limit = np.nextafter(limit, np.float32(-np.inf))
        above = mode in ("BRANCH_GT", "BRANCH_GTE")
        place = len(tree.features)
        tree.features.append(int(feature))
        tree.limits.append(float(limit))
        pending += [(yes, [*path, (place, above)]), (no, [*path, (place, not above)])]
    return tree


def _weigh(step: Step, kind: str, trees: dict[int, _Tree], weights: Array) -> None:
    """Put in what each leaf says."""
    places = {
        (tree, leaf): (number, place)
        for number, (tree, its) in enumerate(trees.items())
        for place, leaf in enumerate(its.leaves)
    }
    names = ("treeids", "nodeids", "ids", "weights")
    columns = [step.attribute(f"{kind}_{name}", []) for name in names]
    if len({len(one) for one in columns}) != 1:
        step.refuse("its leaves have attributes of several lengths")
    for tree, leaf, output, weight in zip(*columns, strict=True):
        if (tree, leaf) not in places:
            step.refuse(f"node {leaf} of tree {tree} is no leaf and has a weight")
        column = int(output) if weights.shape[2] > 1 else 0
        if not 0 <= column < weights.shape[2]:
            step.refuse(f"a leaf has a weight for output {column} of {weights.shape[2]}")
        number, place = places[tree, leaf]
        weights[number, place, column] += weight
