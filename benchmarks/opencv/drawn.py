"""Drawn nets of the types that OpenCV 4 imports, beside it.

python -m benchmarks.opencv FOLDER drawn [--count 100] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sparknet import caffe
from sparknet.errors import SparkNetError
from sparknet.opencv import dnn
from sparknet.proto import parse_net

LIMIT = 1e-5
Draw = Callable[[np.random.Generator], str]


def _pick(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _convolution(rng: np.random.Generator) -> str:
    group = _pick(rng, 1, 1, 2, 4)
    return (
        f"convolution_param {{ num_output: {4 * _pick(rng, 1, 2, 4)} group: {group} "
        f"kernel_size: {_pick(rng, 1, 2, 3, 5)} stride: {_pick(rng, 1, 1, 2)} "
        f"pad: {_pick(rng, 0, 1, 2)} dilation: {_pick(rng, 1, 1, 2)} "
        f"bias_term: {_pick(rng, 'true', 'false')} }}"
    )


def _deconvolution(rng: np.random.Generator) -> str:
    return (
        f"convolution_param {{ num_output: {4 * _pick(rng, 1, 2)} group: {_pick(rng, 1, 2, 4)} "
        f"kernel_size: {_pick(rng, 2, 3, 4)} stride: {_pick(rng, 1, 2)} pad: {_pick(rng, 0, 1)} "
        f"bias_term: {_pick(rng, 'true', 'false')} }}"
    )


def _pooling(rng: np.random.Generator) -> str:
    if rng.random() < 0.15:
        return f"pooling_param {{ pool: {_pick(rng, 'MAX', 'AVE')} global_pooling: true }}"
    kernel = _pick(rng, 2, 3, 4)
    return (
        f"pooling_param {{ pool: {_pick(rng, 'MAX', 'AVE')} kernel_size: {kernel} "
        f"stride: {_pick(rng, 1, 2, 3)} pad: {int(rng.integers(0, min(kernel, 3)))} }}"
    )


ONE: dict[str, Draw] = {
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "Pooling": _pooling,
    "LRN": lambda rng: (
        f"lrn_param {{ local_size: {_pick(rng, 3, 5)} alpha: {_pick(rng, 0.1, 2)} "
        f"beta: {_pick(rng, 0.5, 0.75)} "
        f"norm_region: {_pick(rng, 'ACROSS_CHANNELS', 'WITHIN_CHANNEL')} }}"
    ),
    "InnerProduct": lambda rng: (
        f"inner_product_param {{ num_output: {_pick(rng, 3, 8)} axis: {_pick(rng, 1, 1, 1, 2)} "
        f"bias_term: {_pick(rng, 'true', 'false')} }}"
    ),
    "BatchNorm": lambda rng: _pick(rng, "", "batch_norm_param { eps: 0.01 }"),
    "Scale": lambda rng: f"scale_param {{ bias_term: {_pick(rng, 'true', 'false')} }}",
    "Bias": lambda rng: "",
    "MVN": lambda rng: (
        f"mvn_param {{ normalize_variance: {_pick(rng, 'true', 'false')} "
        f"across_channels: {_pick(rng, 'true', 'false')} }}"
    ),
    "Normalize": lambda rng: (
        f"norm_param {{ across_spatial: {_pick(rng, 'true', 'false')} "
        f"channel_shared: {_pick(rng, 'true', 'false')} }}"
    ),
    "ReLU": lambda rng: _pick(rng, "", "relu_param { negative_slope: 0.2 }"),
    "PReLU": lambda rng: _pick(rng, "", "prelu_param { channel_shared: true }"),
    "ELU": lambda rng: "",
    "Sigmoid": lambda rng: "",
    "TanH": lambda rng: "",
    "BNLL": lambda rng: "",
    "AbsVal": lambda rng: "",
    "Power": lambda rng: (
        f"power_param {{ power: {_pick(rng, 1, 2)} scale: {_pick(rng, 1, 0.5)} "
        f"shift: {_pick(rng, 0, 1.5)} }}"
    ),
    "Exp": lambda rng: _pick(rng, "", "exp_param { base: 2 scale: 0.5 shift: 0.1 }"),
    "Dropout": lambda rng: "dropout_param { dropout_ratio: 0.4 }",
    "Softmax": lambda rng: f"softmax_param {{ axis: {_pick(rng, 1, 2, 3)} }}",
    "Flatten": lambda rng: f"flatten_param {{ axis: {_pick(rng, 1, 2)} }}",
    "Reshape": lambda rng: _pick(
        rng,
        "reshape_param { shape { dim: 0 dim: -1 dim: 1 dim: 0 } axis: 0 }",
        "reshape_param { shape { dim: 0 dim: 0 dim: -1 } }",
        "reshape_param { shape { dim: -1 } axis: 1 }",
    ),
    "Permute": lambda rng: (
        "permute_param { "
        + " ".join(f"order: {axis}" for axis in [0, *rng.permutation(3) + 1])
        + " }"
    ),
    "Reorg": lambda rng: "reorg_param { stride: 2 }",
    "ShuffleChannel": lambda rng: "shuffle_channel_param { group: 2 }",
}
"""What one layer's options may be, by its type."""
LAST = ("Flatten", "Reshape", "InnerProduct", "Permute", "Softmax")
"""Types after which a net ends, as few others take what they make."""


def prototxt(rng: np.random.Generator) -> str:
    """A chain of drawn layers, some of them in two branches that meet again."""
    height, width = 2 * rng.integers(6, 14, 2)
    size = f"dim: {_pick(rng, 1, 2)} dim: 4 dim: {height} dim: {width}"
    lines = [f'name: "drawn" input: "data" input_shape {{ {size} }}']
    top = "data"

    def add(kind: str, bottoms: list[str], options: str = "", in_place: bool = False) -> str:
        name = f"{kind.lower()}_{len(lines)}"
        words = " ".join(f'bottom: "{bottom}"' for bottom in bottoms)
        made = bottoms[0] if in_place else name
        lines.append(f'layer {{ name: "{name}" type: "{kind}" {words} top: "{made}" {options} }}')
        return made

    inner = [kind for kind in ONE if kind not in LAST and kind not in ("Reorg", "ShuffleChannel")]
    for _ in range(int(rng.integers(2, 7))):
        kind = str(rng.choice(inner))
        in_place = kind in ("ReLU", "BatchNorm", "Scale", "Sigmoid", "Dropout") and top != "data"
        if rng.random() < 0.25:
            first = add("Convolution", [top], "convolution_param { num_output: 8 kernel_size: 1 }")
            second = add(_pick(rng, "TanH", "Sigmoid", "ReLU"), [first])
            how = _pick(rng, "Eltwise", "Concat")
            operation = f"eltwise_param {{ operation: {_pick(rng, 'SUM', 'PROD', 'MAX')} }}"
            top = add(how, [first, second], operation if how == "Eltwise" else "")
        top = add(kind, [top], ONE[kind](rng), in_place and bool(rng.integers(2)))
    if rng.random() < 0.5:
        kind = str(rng.choice([*LAST, "Reorg", "ShuffleChannel"]))
        add(kind, [top], ONE[kind](rng))
    return "\n".join(lines) + "\n"


def write(text: str, rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """Write the net and drawn weights; ValueError if Caffe's rules refuse it."""
    net = caffe.Net.from_proto(parse_net(text), caffe.TEST)
    for node in net.graph.nodes:
        for number, blob in enumerate(net.params.get(node.name, ())):
            values = rng.uniform(-0.5, 0.5, blob.shape)
            if node.type == "BatchNorm" and number:
                values = np.abs(values) + 0.3 if number == 1 else np.ones_like(values)
            blob.data[...] = values
    names = str(folder / "drawn.prototxt"), str(folder / "drawn.caffemodel")
    Path(names[0]).write_text(text)
    net.save(names[1])
    return names


def main() -> int:
    import cv2

    parser = argparse.ArgumentParser("python -m benchmarks.opencv FOLDER drawn")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    kinds: Counter[str] = Counter()
    differences: list[str] = []
    same, seed = 0, chosen.seed * 100_000
    while same + len(differences) < chosen.count:
        seed += 1
        rng = np.random.default_rng(seed)
        text = prototxt(rng)
        try:
            names = write(text, rng, chosen.folder)
        except SparkNetError:
            continue
        theirs, ours = (read(*names) for read in (cv2.dnn.readNetFromCaffe, dnn.readNetFromCaffe))
        theirs.enableWinograd(False)
        shape = next(iter(ours._network.inputs.values()))
        values = rng.uniform(-2, 2, shape).astype(np.float32)
        try:
            theirs.setInput(values)
            want = theirs.forward()
        except cv2.error:
            continue  # it imports no such options
        ours.setInput(values)
        got = ours.forward()
        kinds.update(layer.type for layer in ours._network.layers)
        largest = max(1.0, float(np.abs(want).max()))
        if got.shape == want.shape and np.abs(got - want).max() <= LIMIT * largest:
            same += 1
        else:
            apart = np.abs(got - want).max() if got.shape == want.shape else (got.shape, want.shape)
            differences.append(f"seed {seed}: {apart}\n{text}")
    print(*differences, sep="\n")
    print(f"{same} of {chosen.count} drawn nets compute the same; layers: {dict(kinds)}")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
