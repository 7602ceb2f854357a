"""Passes that are recorded and replayed, against those that run layer by layer."""

import gc
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch

from sparknet import caffe
from sparknet.errors import ArrayError, LayerError, OutOfMemory
from sparknet.proto import parse_net
from sparknet.torch import layer_passes, recorded
from sparknet.torch.memory import DevicePlace
from tests.caffe.gradient import input_layer
from tests.caffe.solvers import small
from tests.torch.tape import CpuTape

PICTURES = (
    input_layer("data", (3, 2, 9, 7))
    + input_layer("label", (3,))
    + """
    layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
      num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" }
    layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } }
    layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
    layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
      pooling_param { kernel_size: 3 stride: 2 } }
    layer { name: "drop" type: "Dropout" bottom: "pool" top: "drop" }
    layer { name: "left" type: "InnerProduct" bottom: "drop" top: "left" inner_product_param {
      num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "right" type: "InnerProduct" bottom: "drop" top: "right" inner_product_param {
      num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "sum" type: "Eltwise" bottom: "left" bottom: "right" top: "sum" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "sum" bottom: "label" top: "loss" }
"""
)
SEQUENCES = (
    input_layer("x", (4, 2, 3))
    + input_layer("cont", (4, 2))
    + """
    layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "h" recurrent_param {
      num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "ip" type: "InnerProduct" bottom: "h" top: "y" inner_product_param {
      num_output: 2 axis: 2 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1
      reduction_param { operation: SUMSQ } }
"""
)
Made = tuple[Any, list[CpuTape]]


@pytest.fixture
def tapes(monkeypatch):
    """Those that were made; passes are recorded from the third on, as on a GPU."""
    made: list[CpuTape] = []

    def tape_of(place: DevicePlace) -> CpuTape | None:
        if not place.apart:
            return None
        made.append(CpuTape())
        return made[-1]

    monkeypatch.setattr(recorded, "tape_of", tape_of)
    return made


def test_nothing_is_collected_while_a_pass_is_recorded(tapes, monkeypatch):
    collects = []
    record = CpuTape.record

    def note(tape: CpuTape, work: Callable[[], None]) -> None:
        collects.append(gc.isenabled())
        record(tape, work)

    monkeypatch.setattr(CpuTape, "record", note)
    net, _ = nets(PICTURES, monkeypatch)
    for _ in range(3):
        net.forward()
    assert (collects, gc.isenabled()) == ([False], True)


def nets(text, monkeypatch, **more):
    """The same net twice: one whose passes are recorded, and one that runs layer by layer."""
    found = []
    for tape_of in (recorded.tape_of, lambda place: None):
        with monkeypatch.context() as patch:
            patch.setattr(recorded, "tape_of", tape_of)
            made = caffe.Net.from_proto(
                parse_net("force_backward: true\n" + text),
                caffe.TRAIN,
                seed=7,
                device="apart",
                **more,
            )
        found.append(made)
    return found


def recordings(net):
    return len(net._runtime.engine._recorded._found)


def everything(net):
    found = {f"{name}.data": np.array(blob.data) for name, blob in net.blobs.items()}
    found |= {f"{name}.diff": np.array(blob.diff) for name, blob in net.blobs.items()}
    found |= {"weights": np.array(net.flat_params), "gradients": np.array(net.flat_diffs)}
    return found


def play(both, feed, passes=6):
    """Bits are the same after each pass, whatever is looked at."""
    for number in range(passes):
        told = []
        for net in both:
            feed(net, number)
            if number != 4:  # then gradients add up
                net.clear_param_diffs()
            net.forward()
            net.backward()
            told.append(everything(net))
        for name, values in told[1].items():
            np.testing.assert_array_equal(told[0][name], values, err_msg=f"{name}, {number}")


def feed_pictures(net, number):
    draw = np.random.default_rng(number)
    net.blobs["data"].data[...] = draw.normal(size=net.blobs["data"].shape)
    net.blobs["label"].data[...] = draw.integers(0, 5, 3)


def feed_sequences(net, number):
    net.blobs["x"].data[...] = np.random.default_rng(number).normal(size=(4, 2, 3))
    net.blobs["cont"].data[...] = np.arange(4)[:, None] > (number == 0)


@pytest.mark.parametrize("kind", ["pictures", "sequences"])
def test_replays_leave_the_bits_of_other_passes(kind, tapes, monkeypatch):
    """Masks that are drawn anew, running statistics, and states that go on from pass to pass."""
    text, feed = {
        "pictures": (PICTURES, feed_pictures),
        "sequences": (SEQUENCES, feed_sequences),
    }[kind]
    both = nets(text, monkeypatch)
    play(both, feed)
    assert [recordings(net) for net in both] == [2, 0]


def test_what_a_program_writes_between_passes_counts(tapes, monkeypatch):
    both = nets(PICTURES, monkeypatch)

    def feed(net, number):
        feed_pictures(net, number)
        net.blobs["loss"].diff[...] = 1 + number
        net.params["left"][0].data[...] *= 1.5
        net.blobs["sum"].data[...] = 7  # is computed anew

    play(both, feed)
    assert recordings(both[0]) == 2


def test_a_pass_back_is_that_of_the_pass_before_it(tapes, monkeypatch):
    """Which may be one of a part of the layers, recorded or not."""
    both = nets(PICTURES, monkeypatch)
    for number in range(14):
        told = []
        for net in both:
            feed_pictures(net, number)
            net.clear_param_diffs()
            net.forward()
            if number in (4, 5, 6, 8, 9):
                net.params["left"][0].data[...] *= 0.9
                net.forward(start="left")
            if number == 11:
                net.params["right"][0].data[...] *= 0.9
                net.forward(start="right", end="right")
            net.backward()
            told.append(everything(net))
        for name, values in told[1].items():
            np.testing.assert_array_equal(told[0][name], values, err_msg=f"{name}, {number}")
    assert recordings(both[0]) == 3


def test_other_shapes_are_recorded_anew(tapes, monkeypatch):
    both = nets(PICTURES, monkeypatch)
    play(both, feed_pictures, 4)
    first = len(tapes)
    for net in both:
        net.blobs["data"].reshape(3, 2, 11, 8)
    with pytest.raises(LayerError):
        both[0].forward()
    for net in both:
        net.blobs["data"].reshape(3, 2, 9, 7)
        net.reshape()
    assert recordings(both[0]) == 0
    play(both, feed_pictures, 4)
    assert recordings(both[0]) == 2
    assert len(tapes) > first


def test_a_blob_that_is_looked_at_is_kept_from_then_on(tapes, monkeypatch):
    both = nets(PICTURES, monkeypatch, keep_blobs=False)
    for number in range(8):
        told = []
        for net in both:
            feed_pictures(net, number)
            net.clear_param_diffs()
            net.forward()
            net.backward()
            told.append(np.array(net.flat_diffs))
            if number > 3:
                told[-1] = np.append(told[-1], net.blobs["pool"].data)
            elif number == 3:
                with pytest.raises(ArrayError, match="'pool' were given back"):
                    _ = net.blobs["pool"].data
        np.testing.assert_array_equal(*told)
    assert recordings(both[0]) == 2


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_a_solver_trains_as_without(kind, tapes, monkeypatch):
    found = []
    for tape_of in (recorded.tape_of, lambda place: None):
        monkeypatch.setattr(recorded, "tape_of", tape_of)
        solver = caffe.get_solver(small.settings(kind, "iter_size: 2"), device="apart")
        small.train(solver, 6)
        found.append(small.weights(solver))
    np.testing.assert_array_equal(*found)
    assert len(tapes) > 3  # both passes, with and without gradients before them


def test_a_label_out_of_range_is_told_as_ever(tapes, monkeypatch):
    net, _ = nets(PICTURES, monkeypatch)
    for number in range(6):
        feed_pictures(net, number)
        if number == 4:
            net.blobs["label"].data[1] = 9
            with pytest.raises(
                LayerError, match="'loss': SoftmaxWithLoss: label 9 is out of range"
            ):
                net.forward()
        else:
            net.forward()
            net.backward()
    assert recordings(net) == 2


def test_what_waits_for_the_device_is_not_recorded(tapes, monkeypatch):
    text = (
        input_layer("x", (4, 3))
        + input_layer("marks", (4,))
        + """
        layer { name: "twice" type: "Power" bottom: "x" top: "y" power_param { scale: 2 } }
        layer { name: "some" type: "Filter" bottom: "y" bottom: "marks" top: "z" }
        layer { name: "more" type: "Power" bottom: "z" top: "w" power_param { shift: 1 } }
        """
    )
    net, _ = nets(text, monkeypatch)
    for number in range(5):
        net.blobs["x"].data[...] = number
        net.blobs["marks"].data[...] = [1, 0, 1, number % 2]
        net.forward()
        assert net.blobs["w"].data.shape == (2 + number % 2, 3)
        assert np.all(net.blobs["w"].data == 2 * number + 1)
    assert recordings(net) == 0


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("operation not permitted when stream is capturing\nand more", "operation .* capturing$"),
        ("", "RuntimeError$"),
    ],
)
def test_a_recording_that_fails_costs_a_warning(raised, told, monkeypatch):
    class Broken(CpuTape):
        def record(self, work: Callable[[], None]) -> None:
            super().record(work)
            raise RuntimeError(raised)

    monkeypatch.setattr(recorded, "tape_of", lambda place: Broken() if place.apart else None)
    both = nets(PICTURES, monkeypatch)
    with pytest.warns(UserWarning, match=f"layer by layer: {told}"):
        play(both, feed_pictures, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(both, feed_pictures, 4)
    assert recordings(both[0]) == 0


@pytest.mark.parametrize("back", [False, True])
def test_too_little_memory_is_told_with_the_layer(back, tapes, monkeypatch):
    net, _ = nets(PICTURES, monkeypatch)
    refused = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1 GiB"
    run = getattr(layer_passes, "backward" if back else "forward")

    def full(layer, shares):
        if layer.name == "pool":
            raise torch.cuda.OutOfMemoryError(refused + ". More text.")
        run(layer, shares)

    monkeypatch.setattr(layer_passes, run.__name__, full)
    feed_pictures(net, 0)
    with pytest.raises(OutOfMemory, match=r"'pool': Pooling: cpu has too little .*1 GiB\)$"):
        net._runtime.forward_backward()


def test_batchnorm_and_the_scale_in_its_place_are_one_step(monkeypatch):
    """The same numbers as of two layers, which they are while layers are timed."""
    one, two = nets(PICTURES.replace('type: "Dropout"', 'type: "AbsVal"'), monkeypatch)
    two.time_layers(True)
    assert list(one._runtime.engine._joined) == [3]
    for net in (one, two):
        feed_pictures(net, 0)
        net.clear_param_diffs()
        net.forward()
        net.backward()
    for name, values in everything(two).items():
        np.testing.assert_allclose(
            everything(one)[name], values, rtol=2e-5, atol=2e-6, err_msg=name
        )


@pytest.mark.parametrize("keep_blobs", [True, False])
@pytest.mark.parametrize("watched", ["before_backward", "after_forward"])
def test_passes_that_split_what_is_one_step(watched, keep_blobs, tapes, monkeypatch):
    """A callback cuts one direction into single layers, and the other is run as before."""
    both = nets(PICTURES, monkeypatch, keep_blobs=keep_blobs)
    alone = nets(PICTURES, monkeypatch, keep_blobs=keep_blobs)[1]
    alone.before_backward(lambda layer: None)
    alone.after_forward(lambda layer: None)
    for number in range(9):
        if number == 5:
            getattr(both[0], watched)(lambda layer: None)
        told = []
        for net in (both[0], alone):
            feed_pictures(net, number)
            net.clear_param_diffs()
            net.forward()
            net.backward()
            told.append((np.array(net.flat_diffs), np.array(net.flat_params)))
        for mine, want in zip(*told, strict=True):
            np.testing.assert_allclose(mine, want, rtol=2e-5, atol=2e-6, err_msg=str(number))


@pytest.mark.parametrize("keep_blobs", [True, False])
def test_bfloat16_stays_between_layers(keep_blobs, monkeypatch):
    net, _ = nets(PICTURES, monkeypatch, precision="bf16", keep_blobs=keep_blobs)
    kinds: list[torch.dtype] = []
    for layer in net._runtime.engine._layers:
        if layer.type in ("ReLU", "Pooling", "Dropout", "Eltwise"):
            compute = layer.translation.compute

            def watched(given, bottoms, params, run=compute):
                kinds.extend(one.dtype for one in bottoms)
                return run(given, bottoms, params)

            object.__setattr__(layer, "translation", replace(layer.translation, compute=watched))
    feed_pictures(net, 0)
    net.clear_param_diffs()
    net.forward()
    net.backward()
    assert kinds == [torch.bfloat16] * 5
    assert net.blobs["loss"].data.dtype == net.flat_diffs.numpy().dtype == np.float32
    exact, _ = nets(PICTURES, monkeypatch)
    exact.flat_params.copy_from(net.flat_params)
    feed_pictures(exact, 0)
    exact.clear_param_diffs()
    exact.forward()
    exact.backward()
    got, want = np.array(net.flat_diffs), np.array(exact.flat_diffs)
    assert np.linalg.norm(got - want) < 0.02 * np.linalg.norm(want)
    assert np.linalg.norm(got - want) > 0
