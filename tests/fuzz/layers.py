"""Nets of one layer or a few, drawn: shapes for each bottom, options, values; built, run, and
reshaped.

A drawn net is a prototxt, whose comments say in which phase it is built and to which shapes its
inputs change between two passes.
"""

import hashlib
import random
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from sparknet import caffe
from sparknet.errors import SparkNetError
from sparknet.layers import LAYERS
from sparknet.proto import caffe_pb2, parse_net, parse_text
from tests.caffe.gradient import input_layer
from tests.fuzz.layer_cases import CASES, Case
from tests.fuzz.native import is_small

TYPES = sorted(CASES)
SIZES = (0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 12, 16, 20)
WHOLE = (0, 1, 2, 3, 4, 5, 8, 16, -1, -2)
REAL = (0.0, 0.5, 1.0, -1.0, 2.0, 1e-3, 30.0)


def draw_net(rng: random.Random, type_name: str | None = None, behind: Sequence[str] = ()) -> bytes:
    """A net with a layer of the type, or of any; about half of them can be built.  Layers of the
    types ``behind`` follow, each on a top of the layer before it."""
    type_name = type_name or rng.choice(TYPES)
    case = rng.choice(CASES[type_name])
    shapes = [list(shape) for shape in case.shapes]
    if rng.random() < 0.6:
        _change_shapes(rng, shapes)
    later = [list(shape) for shape in shapes]
    _change_shapes(rng, later)
    lines = [f"# phase {rng.choice(('TRAIN', 'TRAIN', 'TEST'))}"]
    lines += [f"# then x{i}: {_dims(shape)}" for i, shape in enumerate(later)]
    lines += ["force_backward: true"]
    lines += [input_layer(f"x{i}", shape).rstrip() for i, shape in enumerate(shapes)]
    names, tops = [f"x{i}" for i in range(len(shapes))], [f"y{i}" for i in range(case.tops)]
    lines += [_layer(rng, type_name, case, "l", names, tops)]
    for number, follower in enumerate(behind):
        ends = parse_text(lines[-1], caffe_pb2.NetParameter).layer[0].top or names or ["x0"]
        case = rng.choice([one for one in CASES[follower] if len(one.shapes) <= 2])
        names = [rng.choice(ends) for _ in case.shapes]
        tops = [f"{'abcdef'[number]}{i}" for i in range(case.tops)]
        lines += [_layer(rng, follower, case, f"l{number}", names, tops)]
    return "\n".join(lines).encode()


def _dims(shape: list[int]) -> str:
    return " ".join(map(str, shape))


def _change_shapes(rng: random.Random, shapes: list[list[int]]) -> None:
    """A size in one bottom or in all that have it, or an axis more or fewer."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not shapes:
            return
        one = rng.choice(shapes)
        kind = rng.random()
        if kind < 0.35 and one:
            one[rng.randrange(len(one))] = rng.choice(SIZES)
        elif kind < 0.8 and one:  # the batch, mostly: what the layer still takes
            axis = rng.choice((0, 0, 0, rng.randrange(len(one))))
            old, new = one[axis], rng.choice(SIZES)
            for shape in shapes:
                if axis < len(shape) and shape[axis] == old:
                    shape[axis] = new
        elif kind < 0.87:
            one.insert(rng.randrange(len(one) + 1), rng.choice(SIZES))
        elif kind < 0.94 and one:
            del one[rng.randrange(len(one))]
        else:
            one[:] = rng.choice(shapes)


def type_of(data: bytes) -> str:
    """The layer's type of a drawn net."""
    found = re.findall(rb'layer { name: "l" type: "(\w+)"', data)
    return found[0].decode() if found else ""


def _layer(
    rng: random.Random, type_name: str, case: Case, name: str, names: list[str], tops: list[str]
) -> str:
    kind = LAYERS[type_name]
    if kind.works_in_place and names and tops and rng.random() < 0.2:
        tops[0] = names[0]
    if rng.random() < 0.1:
        tops = tops[: kind.tops.least] or tops
    layer = parse_text(case.options, caffe_pb2.LayerParameter)
    layer.name, layer.type = name, type_name
    layer.bottom.extend(names)
    layer.top.extend(tops)
    fields = [name for name in (kind.field, *kind.fields) if name is not None]
    if fields and rng.random() < 0.5:
        for _ in range(rng.choice((1, 1, 2))):
            _change_option(rng, getattr(layer, rng.choice(fields)))
    return f"layer {{ {' '.join(str(layer).split())} }}"


def _change_option(rng, options):
    """Another value of one option that has a number, a word of an enumeration or a switch."""
    plain = [one for one in options.DESCRIPTOR.fields if one.message_type is None]
    plain = [one for one in plain if one.type != one.TYPE_STRING]
    if not plain:
        return
    known = [one for one, _ in options.ListFields() if one in plain]
    field = rng.choice(known if known and rng.random() < 0.5 else plain)
    held = getattr(options, field.name)
    with suppress(ValueError):  # a number below zero where there is none
        if not hasattr(held, "append"):
            setattr(options, field.name, _value(rng, field))
        elif held and rng.random() < 0.6:
            held[rng.randrange(len(held))] = _value(rng, field)
        elif held and rng.random() < 0.5:
            del held[rng.randrange(len(held))]
        else:
            held.append(_value(rng, field))


def _value(rng, field):
    if field.enum_type is not None:
        return rng.choice([value.number for value in field.enum_type.values])
    if field.type == field.TYPE_BOOL:
        return rng.random() < 0.5
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice(REAL)
    return rng.choice(WHOLE)


def layer(data: bytes) -> None:
    """Build, forward and backward, change the inputs, backward, and both passes again."""
    text = data.decode("utf-8", "replace")
    if is_drawn(text):
        for refusal in passes(built(text), text, values_for(data)):
            if "cannot be computed for" in refusal:
                raise AssertionError(f"refused by no rule of its own: {refusal}")


def is_drawn(text: str) -> bool:
    """Whether a net is small enough to be built."""
    sizes = re.findall(r"\d+", text.split("name:")[0])
    return all(len(number) <= 2 for number in sizes) and is_small(parse_net(text))


def values_for(data: bytes) -> np.random.Generator:
    """The values that a drawn net is filled with."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(data).digest()[:8], "little"))


def built(text, **options):
    """The net, in its phase."""
    phase = caffe.TEST if "# phase TEST" in text else caffe.TRAIN
    return caffe.Net.from_proto(parse_net(text), phase, seed=1, trusted=False, **options)


def passes(net, text, rng, noise=0.0):
    """Run the passes of `layer` with values that are `moved`, and tell after each why it was
    refused, or nothing."""
    yield from _both_passes(net, rng, noise)
    for name, sizes in re.findall(r"^# then (x\d+): *([\d ]*)$", text, re.MULTILINE):
        if name in net.blobs:
            net.blobs[name].reshape(*map(int, sizes.split()))
    with suppress(SparkNetError):
        net.reshape()
    with suppress(SparkNetError):
        net.backward()  # what the pass before has left may fit no longer
    net.clear_param_diffs()
    yield from _both_passes(net, rng, noise)


def _both_passes(net, rng, noise):
    for name in net.inputs:
        _fill(net.blobs[name].data, rng)
        if noise:
            net.blobs[name].data[...] = moved(net.blobs[name].data, noise)
    refusal = _refusal(net.forward)
    yield refusal
    if not refusal:
        for name in net.outputs:
            net.blobs[name].diff[...] = rng.uniform(-1, 1, net.blobs[name].data.shape)
        yield _refusal(net.backward)


def _refusal(run):
    """Why a pass is refused: values that a layer cannot take may be."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of odd numbers
        try:
            run()
        except SparkNetError as error:
            return str(error)
    return ""


def moved(values, noise):
    """Values a little further from zero, whole ones above their number.  Equal ones stay equal
    unless ``noise`` is below zero."""
    seen = values if noise > 0 else np.arange(values.size).reshape(values.shape)
    with np.errstate(all="ignore"):
        return values * (1 + abs(noise) * (1 + np.sin(1e4 * seen))) if noise else values


def _fill(values, rng):
    """Labels, boxes in rows, or any numbers; now and then odd ones."""
    kind = rng.random()
    if kind < 0.4:
        values[...] = rng.uniform(-1, 1, values.shape)
    elif kind < 0.7:
        values[...] = rng.integers(0, 3, values.shape)
    elif kind < 0.85 and values.ndim:
        values[...] = np.sort(rng.uniform(0, 9, values.shape), -1)
        values[..., :1] = rng.integers(0, 2, values[..., :1].shape)
    elif kind < 0.95:
        values[...] = rng.uniform(0, 1, values.shape)
    elif kind < 0.98 and values.size:
        values[...] = rng.uniform(-1, 1, values.shape)
        values.flat[rng.integers(values.size)] = np.nan
    else:
        values[...] = rng.choice([np.nan, np.inf, -np.inf, 1e30, -7, 2**31], values.shape)
