"""Layers between convolutions, whose data is in oneDNN's blocked layouts: same values, and the
same for any number of threads."""

from typing import Any

import numpy as np
import pytest

from sparknet import native
from tests.caffe.gradient import biased, build
from tests.caffe.layers.passing import backward, draw, same


def conv(bottom: str, top: str, channels: int) -> str:
    return (
        f'layer {{ name: "{top}" type: "Convolution" bottom: "{bottom}" top: "{top}" '
        f"convolution_param {{ num_output: {channels} kernel_size: 3 pad: 1 "
        'weight_filler { type: "xavier" } } }\n'
    )


def net_with(middle: str, tops: int = 1, channels: tuple[int, ...] = (32, 32)) -> str:
    text = "".join(conv("x", f"a{i}", many) for i, many in enumerate(channels))
    text += middle
    return text + "".join(conv(f"m{i}", f"y{i}", 16) for i in range(tops))


def one(kind: str, options: str, bottoms: str = "a0", tops: int = 1) -> str:
    below = "".join(f'bottom: "{name}" ' for name in bottoms.split())
    above = "".join(f'top: "m{i}" ' for i in range(tops))
    return f'layer {{ name: "l" type: "{kind}" {below} {above} {options} }}\n'


CASES = {
    "concat": net_with(one("Concat", "", "a0 a1")),
    "concat uneven": net_with(one("Concat", "", "a0 a1"), channels=(24, 5)),
    "concat three": net_with(one("Concat", "", "a0 a1 a2"), channels=(16, 64, 20)),
    "concat items": net_with(one("Concat", "concat_param { axis: 0 }", "a0 a1")),
    "concat rows": net_with(one("Concat", "concat_param { axis: 2 }", "a0 a1")),
    "concat with plain": net_with(one("Concat", "", "a0 x")),
    "slice": net_with(one("Slice", "", "a0", 2), 2),
    "slice uneven": net_with(one("Slice", "slice_param { slice_point: 5 }", "a0", 2), 2),
    "slice rows": net_with(one("Slice", "slice_param { axis: 3 slice_point: 4 }", "a0", 2), 2),
    "permute": net_with(one("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }")),
    "permute uneven": net_with(one("Permute", "permute_param { order: 3 order: 1 }"), 1, (13,)),
    "shuffle": net_with(one("ShuffleChannel", "shuffle_channel_param { group: 4 }")),
    "shuffle uneven": net_with(
        one("ShuffleChannel", "shuffle_channel_param { group: 3 }"), 1, (12,)
    ),
    "upsample": net_with(one("Upsample", "upsample_param { scale: 2 }")),
    "upsample uneven": net_with(one("Upsample", "upsample_param { scale: 3 }"), 1, (13,)),
    "interp": net_with(one("Interp", "interp_param { height: 9 width: 11 }")),
    "interp cropped": net_with(
        one("Interp", "interp_param { zoom_factor: 2 pad_beg: -1 pad_end: -2 }"), 1, (13,)
    ),
    "reshape": net_with(
        one("Reshape", "reshape_param { shape { dim: 0 dim: 16 dim: -1 dim: 7 } }")
    ),
    "crop": net_with(
        one("Crop", "crop_param { axis: 1 offset: 3 offset: 0 offset: 0 }", "a0 a1"), 1, (32, 16)
    ),
    "tile": net_with(one("Tile", "tile_param { tiles: 2 }")),
    "reduction": net_with(one("Reduction", "reduction_param { axis: 3 }")).split(
        'layer { name: "y0"'
    )[0],
}


@pytest.fixture(autouse=True)
def restore_threads():
    before = native.threads()
    yield
    native.set_threads(before)


def run(text: str) -> dict[str, Any]:
    """Forward and backward; inner blobs, not looked at before, keep their layouts in between."""
    net = build(text, {"x": draw(2, 8, 8, 7)})
    rng = np.random.default_rng(0)
    for blobs in net.params.values():
        for blob in blobs:
            blob.data[...] = rng.standard_normal(blob.data.shape)
    net.forward()
    backward(net)
    found = {f"data {name}": np.array(blob.data) for name, blob in net.blobs.items()}
    found |= {f"diff {name}": np.array(blob.diff) for name, blob in net.blobs.items()}
    found |= {
        f"param {name} {i}": np.array(blob.diff)
        for name, blobs in net.params.items()
        for i, blob in enumerate(blobs)
    }
    return found


def plain(text: str, found: dict[str, Any]) -> dict[str, Any]:
    """The middle layer alone on plain blobs, given what the net gave it."""
    middle = next(line for line in text.splitlines() if 'name: "l"' in line) + "\n"
    bottoms = [part.split('"')[1] for part in middle.split("bottom: ")[1:]]
    bottoms = list(dict.fromkeys(bottoms))
    net = build(middle, {name: found[f"data {name}"] for name in bottoms})
    net.forward()
    for name in net.outputs:
        net.blobs[name].diff[...] = found[f"diff {name}"]
    net.backward()
    want = {f"data {name}": np.array(net.blobs[name].data) for name in net.outputs}
    for name in bottoms:
        if name != "x":
            want[f"diff {name}"] = np.array(net.blobs[name].diff)
    return want


@pytest.mark.parametrize("case", CASES)
def test_blocked_equals_plain(case):
    actual = run(CASES[case])
    for key, want in plain(CASES[case], actual).items():
        same(actual[key], want)


@pytest.mark.parametrize("case", CASES)
def test_number_of_threads(case):
    """The layer itself computes the same bits; what convolutions give may differ in the last."""
    text = next(line for line in CASES[case].splitlines() if 'name: "l"' in line)
    actual = run(CASES[case])
    results = []
    for threads in (1, 2, 5):
        native.set_threads(threads)
        results.append(plain(text, actual))
    for other in results[1:]:
        for key, want in results[0].items():
            np.testing.assert_array_equal(other[key], want)


@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_threads_in_sequences(kind):
    text = (
        f'layer {{ name: "l" type: "{kind}" bottom: "x" bottom: "cont" top: "y" '
        'recurrent_param { num_output: 70 weight_filler { type: "constant" value: 0.01 } } }'
    )
    results = []
    for threads in (1, 2, 5):
        native.set_threads(threads)
        net = build(text, {"x": draw(6, 20, 40), "cont": np.ones((6, 20))})
        net.forward()
        backward(net)
        results.append([np.array(net.blobs["y"].data), np.array(net.blobs["x"].diff)])
        results[-1] += [np.array(blob.diff) for blob in net.params["l"]]
    for other in results[1:]:
        for got, want in zip(other, results[0], strict=True):
            same(got, want, 1e-4, 1e-5)


def test_threads_change_between_the_passes():
    """What the forward pass found is still there when the engine has made its primitives anew."""
    texts = {
        'layer { name: "l" type: "BatchReindex" bottom: "xb" bottom: "i" top: "y" '
        "loss_weight: 1 }": [1, 0, 2],
        'layer { name: "l" type: "Filter" bottom: "xb" bottom: "i" top: "y" loss_weight: 1 }': [
            0,
            1,
            1,
        ],
    }
    for text, numbers in texts.items():
        diffs = []
        for after in (1, 2):
            native.set_threads(1)
            net = build(biased("x") + text, {"x": draw(3, 4), "i": np.array(numbers)}, force=False)
            net.forward()
            native.set_threads(after)
            backward(net)
            diffs.append(np.array(net.blobs["xb"].diff))
            assert diffs[-1].any()
        np.testing.assert_array_equal(diffs[0], diffs[1])
