"""Draw small nets and hold the two engines against each other:
python -m tests.fuzz.engines --seconds 60

Both engines get the same net, as the rules of shapes are shared, and the same weights, inputs and
gradients of outputs.  A finding is one line that ``--draw`` repeats.
"""

import argparse
import random
import re
import sys
import time
import warnings
from typing import Any, TypeAlias

import numpy as np

from sparknet.errors import SparkNetError
from sparknet.layers import LAYERS
from sparknet.proto import parse_net
from tests.fuzz.layer_cases import CASES
from tests.fuzz.layers import TYPES, built, draw_net, is_drawn, moved, passes, values_for

Array: TypeAlias = np.ndarray[Any, Any]
Trace: TypeAlias = list[tuple[str, dict[str, Array]]]

BEHIND = sorted(name for name in TYPES if any(len(case.shapes) <= 2 for case in CASES[name]))
IN_PLACE = [name for name in BEHIND if LAYERS[name].works_in_place]
FUSED = [
    *("BatchNorm", "Scale", "Bias", "Power", "ReLU", "ReLU6", "Clip", "Swish", "HardSwish"),
    *("Sigmoid", "Eltwise", "Pooling", "Convolution", "Dropout", "PReLU", "GELU"),
]
"""What the native engine computes together."""
NORMALISE = {"BatchNorm", "BN", "MVN", "LayerNorm", "Normalize"}
"""They make numbers near 1 of last bits, where all their values are equal."""
KNOWN = {
    r"eps: (-1|0)[ .]": "PyTorch's BatchNorm makes 0 of channels of equal values, not NaN",
}
"""What a net's text has where the engines are known to differ (docs/compatibility.md), and why.
Weights of NaN are not drawn for windows with padding either: Caffe multiplies zeros by them, and
the native engine leaves them out."""
TOLERANCE, NOISE = 1e-4, 1e-5
HUGE = 1e12
"""A pass with larger values is not compared: sums of squares overflow in one order alone."""


def net_of(number: int) -> bytes:
    """The drawn net of a number."""
    rng = random.Random(number)
    types = rng.choice((BEHIND, IN_PLACE, IN_PLACE, FUSED))
    behind = [rng.choice(types) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
    return draw_net(rng, TYPES[number % len(TYPES)], behind)


def types_of(data: bytes) -> list[str]:
    """The types of the layers; those in place have a star."""
    layers = [layer for layer in parse_net(data.decode()).layer if layer.type != "Input"]
    return [one.type + "*" * bool({*one.top} & {*one.bottom}) for one in layers]


def trace(data: bytes, device: str | None, noise: float = 0.0) -> Trace:
    """Each pass's refusal, and all values and gradients behind it."""
    text = data.decode()
    rng = values_for(data)
    net = built(text, device=device, keep_blobs=rng.random() < 0.5)
    for blob in (blob for blobs in net.params.values() for blob in blobs):
        blob.data[...] = moved(rng.uniform(0.1, 1, blob.data.shape), noise)
        if blob.data.size and rng.random() < 0.02 and "pad" not in text:
            blob.data.flat[rng.integers(blob.data.size)] = np.nan
    steps: Trace = []
    for refusal in passes(net, text, rng, noise):
        steps.append((refusal, {} if refusal else dict(_arrays(net, len(steps) % 2 == 1))))
    return steps


def _arrays(net, has_gradients):
    """Values; gradients of finite ones, as those of others are whatever a layer makes of them."""
    ends = net.blobs if net.keep_blobs else [*net.inputs, *net.outputs]
    blobs = [(name, [net.blobs[name]]) for name in ends] + list(net.params.items())
    named = {f"{name} {i}": blob for name, all_of in blobs for i, blob in enumerate(all_of)}
    yield from ((name, np.array(blob.data)) for name, blob in named.items())
    gradients = {f"d {name}": np.array(blob.diff) for name, blob in named.items()}
    values = [*gradients.values(), *(np.array(blob.data) for blob in named.values())]
    if has_gradients and all(np.isfinite(one).all() for one in values):
        yield from gradients.items()


def difference(data: bytes) -> str | None:
    """What differs, in one line; "" if nothing does, None if the net cannot be built."""
    text = data.decode()
    if not is_drawn(text) or any(re.search(one, text) for one in KNOWN):
        return None
    found: list[Trace | SparkNetError] = []
    for device in (None, "cpu"):
        try:
            found.append(trace(data, device))
        except SparkNetError as error:
            found.append(error)
    native, other = found
    if isinstance(native, SparkNetError) or isinstance(other, SparkNetError):
        if isinstance(native, SparkNetError) and isinstance(other, SparkNetError):
            return None
        return f"native {_describe(native)} | torch {_describe(other)}"
    again: Trace = []
    normalises = NORMALISE.intersection(name.rstrip("*") for name in types_of(data))
    least = 1e-2 if normalises else TOLERANCE
    for step, ((why, ours), (why_not, theirs)) in enumerate(zip(native, other, strict=False)):
        if bool(why) != bool(why_not):
            return f"pass {step}: native {why or 'runs'} | torch {why_not or 'runs'}"
        if any(_is_huge(one) for one in (*ours.values(), *theirs.values())):
            return ""
        steepest = _largest(values for name, values in ours.items() if name.startswith("d "))
        for name in ours.keys() & theirs.keys():
            floor = steepest if name.startswith("d ") else 1
            if not _differ(ours[name], theirs[name], least, floor):
                continue
            again = again or trace(data, None, -NOISE if normalises else NOISE)
            noisy = again[step][1].get(name) if step < len(again) else None
            if not _is_shaky(ours[name], noisy, theirs[name]):
                return f"pass {step}: {name} {_places(ours[name], theirs[name])}"
    return ""


def _describe(found: Trace | SparkNetError) -> str:
    return f"refuses it: {found}" if isinstance(found, SparkNetError) else "builds it"


def _is_huge(values):
    return bool((np.abs(values) > HUGE).any())


def _largest(arrays):
    return max((float(np.nanmax(np.abs(one), initial=1)) for one in arrays), default=1)


def _differ(a, b, least, floor):
    """``floor`` is the least that counts as the largest value."""
    if a.shape != b.shape:
        return True
    largest = max(floor, _largest([a]))
    return not np.allclose(a, b, least, least * largest, equal_nan=True)


def _is_shaky(a, again, b):
    """Whether other last bits of the inputs change the values as much."""
    if again is None or again.shape != a.shape:
        return True
    if a.shape != b.shape:
        return False
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return not np.array_equal(np.isnan(a), np.isnan(again))
    apart, shift = np.nan_to_num(np.abs(a - b)), np.nan_to_num(np.abs(a - again))
    return bool(apart.max() < 30 * shift.max())


def _places(a, b):
    if a.shape != b.shape:
        return f"has the shape {a.shape} | {b.shape}"
    apart = np.where(np.isnan(a) != np.isnan(b), np.inf, np.nan_to_num(np.abs(a - b)))
    place = np.unravel_index(np.argmax(apart), a.shape) if a.ndim else ()
    return f"at {tuple(map(int, place))}: native {a[place]:g} | torch {b[place]:g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 24))
    parser.add_argument("--draw", type=int, help="the number of one net, which is shown")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.draw is not None:
        print(net_of(options.draw).decode(), difference(net_of(options.draw)), sep="\n")
        return 0
    end, number, counts = time.monotonic() + options.seconds, options.seed, [0, 0, 0]
    while time.monotonic() < end:
        why = difference(net_of(number))
        counts[0 if why is None else 2 if why else 1] += 1
        if why:
            print(f"--draw {number}: {' > '.join(types_of(net_of(number)))}: {why}", flush=True)
        number += 1
    print(f"{sum(counts)} nets: {counts[1]} agree, {counts[2]} differ, {counts[0]} are none")
    return 1 if counts[2] else 0


if __name__ == "__main__":
    sys.exit(main())
