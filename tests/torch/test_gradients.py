"""The gradient of every type that PyTorch computes, over its small layers: the function's own in
float64 against differences, and the engine's in float32 against that.

Layers of drawn sizes and options are held against the native engine in `test_drawn_nets.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch
from torch import Tensor

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.proto import parse_net
from sparknet.torch.engine import translated
from sparknet.torch.layer import SOURCES, VIEWS
from sparknet.torch.translations import TABLE
from tests.caffe.gradient import biased, input_layer
from tests.fuzz.layer_cases import CASES

STEP = 1e-4
SEEDS = range(3)
WITHOUT = {name for name, one in TABLE.items() if one.no_gradient}
WEIGHED = "RecordWeights"
"""It weighs the gradients of what follows: that of its function is another."""
Objective = Callable[[Sequence[Tensor], Sequence[Tensor]], Tensor]
FIXED = {"ContrastiveLoss": 2, "GridSample": 1, "SizedLike": 1, "Upsample": 1}
"""A bottom whose gradient Caffe does not compute, or that has steps."""
ABOVE_ZERO = {"Div", "Log", "MultinomialLogisticLoss", "Normalize", "Pooling"}
TOLERANCE = {"ContrastiveLoss": 1e-3}
"""Of unlike pairs Caffe adds 1e-4 to the distance that it divides by."""


class Case(NamedTuple):
    options: str
    inputs: tuple[Any, ...]
    tops: int


def cases_of(kind: str, seed: int) -> Iterator[Case]:
    """The type's small layers with drawn values; exposed states pass no gradient on."""
    draw = np.random.default_rng(seed)
    for options, shapes, tops in CASES[kind]:
        if "expose_hidden" not in options:
            inputs = [values(kind, n, shapes, draw) for n in range(len(shapes))]
            yield Case(options, tuple(inputs), tops)


def values(kind, bottom, shapes, draw):
    shape = shapes[bottom]
    if kind == "Upsample" and bottom == 1:
        return draw.permutation(4 * np.prod(shape[2:]))[: np.prod(shape[2:])].reshape(
            1, 1, *shape[2:]
        ) * np.ones(shape)
    lacking = TABLE[kind].without_gradient(len(shapes)) if kind in TABLE else {}
    if bottom in lacking or (kind == "ContrastiveLoss" and bottom == 2):
        marks = draw.integers(0, 2, shape)
        marks.flat[0] = 1
        return marks
    return draw.uniform(0.3, 2, shape) if kind in ABOVE_ZERO else draw.normal(size=shape)


def build_net(kind, case):
    """A net of the layer 'l', computed by PyTorch on the CPU; a learned bias of zeros before a
    bottom lets it have a gradient."""
    lines = [input_layer(f"x{n}", one.shape) for n, one in enumerate(case.inputs)]
    lines.append(biased(*(f"x{n}" for n in varied(kind, case))))
    bottoms = [f"x{n}b" if n in varied(kind, case) else f"x{n}" for n in range(len(case.inputs))]
    names = [f'bottom: "{name}"' for name in bottoms]
    names += [f'top: "y{n}"' for n in range(case.tops)]
    if not kind.endswith("Loss"):
        names += ["loss_weight: 1"] * case.tops  # else no gradient would be computed
    lines.append(f'layer {{ name: "l" type: "{kind}" {" ".join(names)} {case.options} }}')
    net = caffe.Net.from_proto(parse_net("".join(lines)), caffe.TRAIN, seed=1, device="cpu")
    for n, values in enumerate(case.inputs):
        net.blobs[f"x{n}"].data[...] = values
    draw = np.random.default_rng(2)
    for n, blob in enumerate(own(net)):
        shape = blob.shape
        each = max(1.0, np.prod(shape) / shape[0]) if shape else 1.0
        drawn = draw.normal(size=shape) / np.sqrt(each)
        blob.data[...] = draw.uniform(0.5, 1.5, shape) if n in statistics(net) else drawn
    return net


def own(net):
    return net.params.get("l", [])


def statistics(net):
    """Parameters that have no gradient."""
    (node,) = (node for node in net._runtime.nodes if node.name == "l")
    return range(*type(node.layer).statistics.indices(len(node.params)))


def varied(kind: str, case: Case) -> list[int]:
    """The bottoms that have a gradient."""
    count = len(case.inputs)
    lacking = TABLE[kind].without_gradient(count) if kind in TABLE else {}
    return [n for n in range(count) if n not in lacking and n != FIXED.get(kind)]


def function_of(layer):
    """The layer's function in float64, which draws the random numbers of its next pass."""
    draws, layer.product = layer.random.draws, torch.float64
    shapes = [top.shape for top in layer.tops]

    def function(bottoms: Sequence[Tensor], params: Sequence[Tensor]) -> tuple[Tensor, ...]:
        layer.random.draws = draws
        layer.state.clear()
        if layer.is_view:
            return tuple(bottoms[0].reshape(shape) for shape in shapes)
        found = layer.translation.compute(layer, bottoms, [one.clone() for one in params])
        return found if isinstance(found, tuple) else (found,)

    return function


def directions(shape: tuple[int, ...], draw: np.random.Generator) -> Iterator[Tensor]:
    """All numbers at once, and some of them alone."""
    everywhere = torch.from_numpy(draw.normal(size=shape))
    yield everywhere / everywhere.norm()
    size = everywhere.numel()
    for place in {0, size - 1, int(draw.integers(size)), int(draw.integers(size))}:
        alone = torch.zeros(shape, dtype=torch.float64)
        alone.view(-1)[place] = 1
        yield alone


def check_differences(
    objective: Objective, bottoms: list[Tensor], params: list[Tensor], tolerance: float, what: str
) -> None:
    """Each gradient, along some directions, is what the function changes by."""
    draw = np.random.default_rng(3)
    for one in (*bottoms, *params):
        if not one.requires_grad:
            continue
        assert one.grad is not None
        for direction in directions(tuple(one.shape), draw):
            got = float((one.grad * direction).sum())
            kept, sides = one.data, []
            for step in (STEP, -STEP):
                one.data = kept + step * direction
                with torch.no_grad():
                    sides.append(float(objective(bottoms, params)))
            one.data = kept
            want = (sides[0] - sides[1]) / (2 * STEP)
            noise = 1e-14 * len(sides) * (abs(sides[0]) + one.grad.numel()) / STEP
            least = tolerance * max(abs(want), abs(got), float(one.grad.abs().mean()))
            assert abs(got - want) <= least + noise, f"{what}: {got} instead of {want}"


def check(kind: str, case: Case) -> None:
    what = f"{kind} {case.options} of {[one.shape for one in case.inputs]}"
    net = build_net(kind, case)
    layer = next(one for one in net._runtime.engine._layers if one.name == "l")
    draws = layer.random.draws
    net.forward()
    net.clear_param_diffs()
    weights = []
    draw = np.random.default_rng(4)
    for n in range(case.tops):
        blob = net.blobs[f"y{n}"]
        drawn = draw.uniform(0.5, 1, blob.shape) * draw.choice([-1, 1], blob.shape)
        blob.diff[...] = drawn * (blob.data != np.finfo(np.float32).min)  # of an empty window
        weights.append(torch.from_numpy(np.array(blob.diff, np.float64)))
    net.backward()

    layer.random.draws = draws
    function = function_of(layer)
    bottoms = [torch.from_numpy(one.astype(np.float32).astype(np.float64)) for one in case.inputs]
    for n in varied(kind, case):
        bottoms[n].requires_grad_()
    params = [torch.from_numpy(np.array(blob.data, np.float64)) for blob in own(net)]
    for n, one in enumerate(params):
        one.requires_grad_(n not in statistics(net))

    def objective(bottoms: Sequence[Tensor], params: Sequence[Tensor]) -> Tensor:
        pairs = zip(function(bottoms, params), weights, strict=True)
        return sum(((one * by).sum() for one, by in pairs), torch.zeros((), dtype=torch.float64))

    for one, by in zip(function(bottoms, params), weights, strict=True):
        by *= one.requires_grad  # no gradient comes from masks and probabilities
    total = objective(bottoms, params)
    if total.requires_grad:
        total.backward()
    pairs = [(bottoms[n], net.blobs[f"x{n}b"]) for n in varied(kind, case)]
    pairs += [(one, blob) for one, blob in zip(params, own(net), strict=True) if one.requires_grad]
    for one, blob in pairs:
        want = torch.zeros_like(one) if one.grad is None else one.grad
        one.grad = want
        least = 1e-4 * float(want.abs().max()) if want.numel() else 0.0
        np.testing.assert_allclose(blob.diff, want, rtol=1e-4, atol=least, err_msg=what)
    check_differences(objective, bottoms, params, TOLERANCE.get(kind, 1e-6), what)


@pytest.mark.parametrize("kind", sorted({*TABLE, *VIEWS} - WITHOUT - {WEIGHED}))
def test_the_gradient_is_that_of_the_function(kind):
    for seed in SEEDS:
        for case in cases_of(kind, seed):
            check(kind, case)


@pytest.mark.parametrize("kind", sorted(WITHOUT))
def test_a_type_without_a_gradient_says_so(kind):
    small = CASES[kind][0]
    inputs = tuple(np.ones(shape, np.float32) for shape in small.shapes)
    lines = [input_layer(f"x{n}", one.shape) for n, one in enumerate(inputs)]
    names = [f'bottom: "x{n}" propagate_down: {str(n == 0).lower()}' for n in range(len(inputs))]
    text = "force_backward: true\n" + "".join(lines)
    text += f'layer {{ name: "l" type: "{kind}" {" ".join(names)} top: "y" {small.options} }}'
    net = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, device="cpu")
    net.forward()
    with pytest.raises(LayerError, match=f"layer 'l': {kind}: has no gradient"):
        net.backward()


def test_records_weigh_the_gradient_of_a_loss():
    text = "force_backward: true\n" + "".join(
        input_layer(name, shape) for name, shape in [("x", (64, 10)), ("t", (64, 10)), ("w", (64,))]
    )
    text += """
        layer { name: "weights" type: "RecordWeights" bottom: "x" bottom: "w" top: "x1"
          propagate_down: true propagate_down: false }
        layer { name: "loss" type: "EuclideanLoss" bottom: "x1" bottom: "t" top: "loss" }
    """
    net = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, device="cpu")
    draw = np.random.default_rng(5)
    for blob in (net.blobs[name] for name in "xtw"):
        blob.data[...] = draw.uniform(0.5, 1.5, blob.shape)
    net.forward()
    net.backward()
    x, t, w = (np.array(net.blobs[name].data, np.float64) for name in "xtw")
    assert float(net.blobs["loss"].data) == pytest.approx((w[:, None] * (x - t) ** 2).sum() / 128)
    np.testing.assert_allclose(net.blobs["x"].diff, w[:, None] * (x - t) / 64, rtol=1e-4, atol=1e-8)


def test_every_type_is_translated_or_a_source():
    types = {*TABLE, *VIEWS}
    assert all(map(translated, types))
    assert not types & SOURCES
