"""Training whose blobs share memory gives the bits of training that keeps them, in less of it."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet import models
from sparknet.dsl import SolverParams
from sparknet.errors import ArrayError, LayerError
from sparknet.graph.records import set_batch
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.replay import keys, set_inputs, set_params, total_loss
from tests.caffe.test_random_nets import _set_params, _values, drafts
from tests.goldens import GOLDENS, index

SHAPE = (4, 8, 12, 12)
BLOCK = """
layer {{ name: "{0}" type: "Convolution" bottom: "{1}" top: "{0}"
         param {{ name: "{2}" }}
         convolution_param {{ num_output: 16 kernel_size: 3 pad: 1 bias_term: false
                              weight_filler {{ type: "msra" }} }} }}
layer {{ name: "{0}_bn" type: "BatchNorm" bottom: "{0}" top: "{0}" }}
layer {{ name: "{0}_scale" type: "Scale" bottom: "{0}" top: "{0}"
         scale_param {{ bias_term: true }} }}
layer {{ name: "{0}_relu" type: "ReLU" bottom: "{0}" top: "{0}" }}
"""
NET = (
    """
layer { name: "data" type: "Input" top: "data" top: "label"
        input_param { shape { dim: 4 dim: 8 dim: 12 dim: 12 } shape { dim: 4 } } }
"""
    + BLOCK.format("first", "data", "alone")
    + BLOCK.format("left", "first", "common")
    + BLOCK.format("right", "left", "common")
    + """
layer { name: "sum" type: "Eltwise" bottom: "right" bottom: "first" top: "sum" }
layer { name: "sum_relu" type: "ReLU" bottom: "sum" top: "sum" }
layer { name: "side" type: "InnerProduct" bottom: "left" top: "side"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "side_loss" type: "SoftmaxWithLoss" bottom: "side" bottom: "label" top: "side_loss"
        loss_weight: 0.3 }
layer { name: "pool" type: "Pooling" bottom: "sum" top: "pool"
        pooling_param { kernel_size: 3 stride: 2 } }
layer { name: "drop" type: "Dropout" bottom: "pool" top: "pool" }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" }
"""
)


def fill(net, rng):
    """Noise for whatever comes in, 0 and 1 for labels."""
    sources = [top for node in net.graph.nodes if not node.bottoms for top in node.tops]
    for name in sources:
        shape = net.blobs[name].shape
        whole = "label" in name or len(shape) < 2
        values = rng.integers(0, 2, shape) if whole else rng.standard_normal(shape)
        net.blobs[name].data[...] = values


def solver_of(net, keep_blobs, **options):
    params = SolverParams(
        net_param=net, base_lr=0.01, lr_policy="fixed", momentum=0.9, random_seed=3, **options
    )
    return caffe.SGDSolver(params, keep_blobs=keep_blobs)


def trace(solver, steps=3, put=fill):
    """Whatever a training leaves to be looked at, step by step."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        put(solver.net, rng)
        solver.step(1)
        net = solver.net
        flat = [net.flat_params, net.flat_diffs, *solver.flat_history]
        yield [np.array(values) for values in flat] + [
            np.array(net.blobs[name].data) for name in net.outputs
        ]


def check_same(kept, lean, **options):
    for want, got in zip(trace(kept, **options), trace(lean, **options), strict=True):
        for one, other in zip(want, got, strict=True):
            np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize(
    "options", [{}, {"iter_size": 3}, {"clip_gradients": 0.05}], ids=["plain", "passes", "clipped"]
)
def test_steps_leave_the_same_bits(options):
    kept, lean = (solver_of(parse_net(NET), keep, **options) for keep in (True, False))
    check_same(kept, lean)


def test_less_memory_is_taken():
    """Gradients share memory; after a step only what comes in and out is held."""
    taken = []
    for keep in (True, False):
        solver = solver_of(parse_net(NET), keep)
        for _ in trace(solver):
            pass
        taken.append(solver.net._runtime.engine.memory())
    kept, lean = taken
    assert lean["pages"] < 0.7 * kept["pages"]
    assert lean["rows"] + lean["layouts"] < 0.2 * (kept["rows"] + kept["layouts"])


def test_copies_of_weights_last_for_a_layer():
    """Four layers of large weights and small images: not four copies each way, and sums."""
    lines = [input_layer("x0", (1, 64, 4, 4))]
    for n in range(4):
        lines.append(
            f'layer {{ name: "c{n}" type: "Convolution" bottom: "x{n}" top: "x{n + 1}" '
            "convolution_param { num_output: 64 kernel_size: 3 pad: 1 "
            'weight_filler { type: "msra" } } }'
        )
    net = caffe.Net.from_proto(parse_net("\n".join(lines)), caffe.TRAIN, keep_blobs=False)
    for _ in range(2):
        net.forward()
        net.backward()
    weights = net.params["c0"][0].data.nbytes
    assert weights < net._runtime.engine.memory()["pages"] < 4 * weights


@pytest.mark.parametrize("name", ["first", "sum", "pool"])
def test_what_is_gone_says_so_and_is_kept_from_then_on(name):
    kept, lean = (solver_of(parse_net(NET), keep) for keep in (True, False))
    check_same(kept, lean)
    blob = lean.net.blobs[name]
    for part, what in (("data", "values"), ("diff", "gradients")):
        with pytest.raises(ArrayError, match=f"the {what} of blob '{name}' were given back after"):
            getattr(blob, part)
    check_same(kept, lean)
    np.testing.assert_array_equal(blob.data, kept.net.blobs[name].data)
    np.testing.assert_array_equal(blob.diff, kept.net.blobs[name].diff)
    check_same(kept, lean)


def test_gradients_that_are_named_are_right():
    found = []
    for keep in (True, False):
        net = caffe.Net.from_proto(parse_net(NET), caffe.TRAIN, seed=3, keep_blobs=keep)
        rng = np.random.default_rng(0)
        fill(net, rng)
        net.forward()
        found.append(net.backward(diffs=["left", "sum"]))
    for name in ("left", "sum"):
        np.testing.assert_array_equal(found[1][name], found[0][name])


def test_gradients_layer_by_layer():
    """Callbacks cut the passes, and may look at what comes next."""
    nets = []
    seen: list[int] = []
    for keep in (True, False):
        net = caffe.Net.from_proto(parse_net(NET), caffe.TRAIN, seed=3, keep_blobs=keep)
        net.before_backward(seen.append)
        fill(net, np.random.default_rng(0))
        for _ in range(2):
            net.clear_param_diffs()
            net.forward()
            net.backward()
        nets.append(net)
    assert len(seen) == 4 * len(net.layers)
    np.testing.assert_array_equal(np.asarray(nets[1].flat_diffs), np.asarray(nets[0].flat_diffs))


def test_a_second_backward_pass_needs_a_forward_pass():
    net = caffe.Net.from_proto(parse_net(NET), caffe.TRAIN, keep_blobs=False)
    fill(net, np.random.default_rng(0))
    net.forward()
    net.backward()
    with pytest.raises(LayerError, match="were given back after their last reader: begin with"):
        net.backward()
    with pytest.raises(LayerError, match="were given back after their last reader: start"):
        net.forward(start="sum")
    net.forward()
    net.backward()


def test_other_shapes():
    kept, lean = (solver_of(parse_net(NET), keep) for keep in (True, False))
    for batch in (4, 2, 6):
        for solver in (kept, lean):
            solver.net.blobs["data"].reshape(batch, *SHAPE[1:])
            solver.net.blobs["label"].reshape(batch)
        check_same(kept, lean, steps=2)


def test_layers_in_python():
    text = NET.replace(
        'name: "sum_relu" type: "ReLU" bottom: "sum" top: "sum"',
        'name: "py" type: "Python" bottom: "sum" top: "py" '
        'python_param { module: "tests.caffe.user_layers" layer: "TimesTen" }',
    ).replace('type: "Pooling" bottom: "sum"', 'type: "Pooling" bottom: "py"')
    check_same(*(solver_of(parse_net(text), keep) for keep in (True, False)))


@pytest.mark.parametrize("name", [case["name"] for case in index("nets") if case["train_steps"]])
def test_recorded_nets(name, monkeypatch):
    monkeypatch.chdir(GOLDENS / "nets")
    with np.load(f"{name}.npz") as arrays:
        recorded = dict(arrays)
    losses: list[list[float]] = []
    solvers = []
    for keep in (True, False):
        solver = caffe.get_solver(f"{name}.solver.prototxt", keep_blobs=keep)
        set_params(solver.net, recorded)
        losses.append([])
        for step in range(3):
            for blob, values in keys(recorded, "train/in/"):
                solver.net.blobs[blob].data[...] = values[step]
            solver.step(1)
            losses[-1].append(total_loss(solver.net))
        solvers.append(solver)
    assert losses[1] == losses[0]
    kept, lean = (np.asarray(solver.net.flat_params) for solver in solvers)
    np.testing.assert_array_equal(lean, kept)


LAYERS = [case for case in index("layers") if case["phase"] == "TRAIN"]


@pytest.mark.parametrize("case", LAYERS, ids=[case["name"] for case in LAYERS])
def test_recorded_layers(case, monkeypatch):
    monkeypatch.chdir(GOLDENS / "layers")
    monkeypatch.syspath_prepend(str(GOLDENS / "layers"))
    arrays = dict(np.load(f"{case['name']}.npz"))
    kept, lean = (
        caffe.Net(f"{case['name']}.prototxt", caffe.TRAIN, keep_blobs=keep)
        for keep in (True, False)
    )
    lean.random_state = kept.random_state
    for number in [*range(case["passes"]), case["passes"] - 1]:
        prefix = f"pass{number}/" if number else ""
        for net in (kept, lean):
            set_params(net, arrays)
            set_inputs(net, arrays, f"{prefix}in/")
            net.forward()
            for blob, value in keys(arrays, f"{prefix}topdiff/"):
                net.blobs[blob].diff[...] = value
            if case["backward"]:
                net.backward()
        for name in kept.outputs:
            np.testing.assert_array_equal(lean.blobs[name].data, kept.blobs[name].data)
        np.testing.assert_array_equal(np.asarray(lean.flat_diffs), np.asarray(kept.flat_diffs))


@settings(
    max_examples=100,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(drafts(), st.integers(0, 2**32 - 1), st.data())
def test_random_nets(d, seed, data):
    rng = np.random.default_rng(seed)
    text = "\n".join([input_layer(name, shape) for name, shape in d.inputs.items()] + d.lines)
    note(text)
    kept, lean = (
        caffe.Net.from_proto(parse_net(text), caffe.TRAIN, keep_blobs=keep)
        for keep in (True, False)
    )
    _set_params(kept, rng)
    lean.flat_params.copy_from(kept.flat_params)
    names = [name for name in kept.blobs if "_split_" not in name]
    for _ in range(3):
        inputs = _values(d, rng)
        expected = data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        slopes = {
            name: rng.standard_normal(kept.blobs[name].shape)
            for name in kept.outputs
            if not kept.blob_loss_weights[name]
        }
        found = []
        for net in (kept, lean):
            values = net.forward(blobs=expected, **inputs)
            net.clear_param_diffs()
            for name, slope in slopes.items():
                net.blobs[name].diff[...] = slope
            gradients = net.backward(diffs=expected)
            found.append([*values.values(), *gradients.values(), np.asarray(net.flat_diffs)])
        for want, got in zip(*found, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "name",
    [
        "lenet",
        "cifar10_quick",
        "mlp_tabular",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("googlenet", "mobilenet", "resnet50", "squeezenet", "caffenet")
        ),
    ],
)
def test_models(name):
    net = models.net(name).to_proto()
    set_batch(net, 2)
    kept, lean = (solver_of(net, keep) for keep in (True, False))
    check_same(kept, lean, steps=2)
    used = [solver.net._runtime.engine.memory()["pages"] for solver in (kept, lean)]
    assert used[1] <= used[0]
