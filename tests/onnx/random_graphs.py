"""Small graphs drawn at random: operators with unusual attributes, constants and shapes in chains.

Each node runs alone in onnxruntime as it is drawn; what that refuses is left out.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from tests.onnx.graphs import Array, helper, numpy_helper, onnx, onnxruntime

MOST = 3000
"""Values of a blob."""
RECORDS = 3
Parts = tuple[str, list[str], dict[str, Any]]
Maker = Callable[["Drawing", str], Parts | None]
MAKERS: list[Maker] = []
SCALAR: set[Maker] = set()
"""Makers that take a number without axes, too."""


def makes(weight: int = 1, *, scalars: bool = False) -> Callable[[Maker], Maker]:
    def kept(maker: Maker) -> Maker:
        MAKERS.extend([maker] * weight)
        if scalars:
            SCALAR.add(maker)
        return maker

    return kept


class Drawing:
    """A graph as far as it is drawn, and the values that its blobs have for one feed."""

    def __init__(self, random: Random, nodes: int) -> None:
        self.random, self.opset = random, random.choice([13, 17, 18, 21])
        self.open = random.random() < 0.7
        self.feeds: dict[str, Array] = {}
        self.values: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.nodes = []
        self.numbers = np.random.default_rng(random.randrange(2**16))
        for name in "xz"[: random.choice([1, 1, 2])]:
            self.feed(name, self.numbers.normal(size=self.shape()).astype(np.float32))
        if random.random() < 0.3:
            self.feed("i", self.numbers.integers(0, 3, self.shape()))
        for _ in range(4 * nodes):
            if len(self.nodes) >= nodes:
                break
            self.add()

    def feed(self, name, value):
        self.feeds[name] = self.values[name] = value

    def shape(self) -> list[int]:
        """Few sizes, so that blobs often fit each other."""
        axes = self.random.choice([1, 2, 2, 3, 4, 4, 4, 5])
        return [RECORDS, *(self.random.choice([1, 2, 4, 5, 6]) for _ in range(axes - 1))]

    # -- what makers ask -----------------------------------------------------------------

    def choice(self, *values):
        return self.random.choice(values)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def axis(self, value, least=0):
        axis = self.integer(min(least, value.ndim - 1), value.ndim - 1)
        return axis - value.ndim if self.random.random() < 0.3 else axis

    def some(self, count: int) -> list[int]:
        found = [one for one in range(count) if self.random.random() < 0.5]
        return found or [self.random.randrange(count)]

    def constant(self, value, dtype=None):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(
            value if dtype is None else np.asarray(value).astype(dtype)
        )
        return name

    def draw(self, *shape: int) -> str:
        return self.constant(self.numbers.normal(size=shape).astype(np.float32))

    def positive(self, *shape: int) -> str:
        return self.constant(self.numbers.uniform(0.5, 2, size=shape).astype(np.float32))

    def of_kind(self, kinds: str, axes: int | None = None) -> str | None:
        found = [
            name
            for name, value in self.values.items()
            if value.dtype.kind in kinds and axes in (None, value.ndim)
        ]
        return self.random.choice(found) if found else None

    def beside(self, name: str) -> str:
        """Another value of the same type, or a constant, that may fit by broadcasting."""
        value = self.values[name]
        others = [
            other
            for other, its in self.values.items()
            if its.dtype == value.dtype and _fit(its.shape, value.shape)
        ]
        if others and self.random.random() < 0.4:
            return self.choice(*others)
        shape = [size if self.random.random() < 0.6 else 1 for size in value.shape]
        if value.shape and self.open:
            shape[0] = 1
        shape = shape[self.integer(0, value.ndim) :] if self.random.random() < 0.6 else shape
        if self.random.random() < 0.1:
            shape = [1, *shape] if len(shape) == value.ndim else shape
        if value.dtype.kind == "f":
            return self.draw(*shape)
        if value.dtype.kind == "b":
            return self.constant(self.numbers.integers(0, 2, shape).astype(bool))
        return self.constant(self.numbers.integers(-2, 4, shape).astype(value.dtype))

    # -- the walk ------------------------------------------------------------------------

    def add(self):
        before = len(self.constants)
        recent = list(self.values)[-3:]
        name = self.choice(*(recent if self.random.random() < 0.7 else self.values))
        maker = self.choice(*MAKERS)
        made = maker(self, name) if self.values[name].ndim or maker in SCALAR else None
        outputs = 1 if made is None else int(made[2].pop("outputs", 1))
        names = [f"v{len(self.nodes)}_{place}" for place in range(outputs)]
        found = None
        if made is not None:
            op, inputs, attributes = made
            known = {**self.values, **self.constants}
            one = helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", **attributes)
            found = alone(one, {key: known[key] for key in inputs if key}, self.opset)
        if found is None or not all(map(_is_usual, found)):
            for key in list(self.constants)[before:]:
                del self.constants[key]
            return
        self.nodes.append(one)
        self.values.update(zip(names, found, strict=True))

    def model(self):
        """Outputs are all values that nobody reads, and one more, as floating numbers."""
        read = {name for one in self.nodes for name in one.input}
        made = [name for name in self.values if name not in self.feeds]
        outputs = [name for name in made if name not in read]
        outputs += [name for name in made if name in read][-1:]
        nodes, names = list(self.nodes), []
        for name in outputs:
            if self.values[name].dtype == np.float32:
                names.append(name)
                continue
            names.append(f"{name}_f")
            nodes.append(helper.make_node("Cast", [name], [f"{name}_f"], name=f"f_{name}", to=1))
        graph = helper.make_graph(
            nodes,
            "drawn",
            [
                _told(name, value, ["n" if self.open else RECORDS, *value.shape[1:]])
                for name, value in self.feeds.items()
                if name in read
            ],
            [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        version = helper.make_opsetid("", self.opset)
        return helper.make_model(graph, opset_imports=[version], ir_version=9)

    @property
    def fed(self):
        read = {name for one in self.nodes for name in one.input}
        return {name: value for name, value in self.feeds.items() if name in read}


def _fit(one: Sequence[int], other: Sequence[int]) -> bool:
    try:
        np.broadcast_shapes(tuple(one), tuple(other))
    except ValueError:
        return False
    return True


def _is_usual(value):
    """Few and finite values, which are more than what rounding has left."""
    if not 0 < value.size <= MOST or value.ndim > 6:
        return False
    largest = float(np.abs(value).max()) if value.dtype.kind == "f" else 0
    return largest == 0 or 1e-4 < largest < 1e4


def _told(name, value, shape):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)


def alone(one, inputs, opset):
    """What one node gives."""
    given = [_told(name, value, value.shape) for name, value in inputs.items()]
    fixed = [numpy_helper.from_array(v, k) for k, v in inputs.items() if k.startswith("c")]
    fixed_names = {each.name for each in fixed}
    given = [each for each in given if each.name not in fixed_names]
    results = [onnx.ValueInfoProto(name=name) for name in one.output]
    graph = helper.make_graph([one], "one", given, results, fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    fed = {name: value for name, value in inputs.items() if name not in fixed_names}
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), _options())
        return [np.asarray(value) for value in session.run(None, fed)]
    except Exception:  # onnxruntime has a class of its own for each status
        return None


def _options():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


# -- operators -------------------------------------------------------------------------------

UNARY: dict[str, dict[str, tuple[float, ...]]] = {
    "Abs": {},
    "Celu": {"alpha": (0.5, 1.0, 2.0)},
    "Elu": {"alpha": (0.5, 1.0)},
    "Exp": {},
    "HardSigmoid": {"alpha": (0.2, 0.5), "beta": (0.5, -0.1)},
    "HardSwish": {},
    "Identity": {},
    "LeakyRelu": {"alpha": (0.01, 0.3, 0.0)},
    "Neg": {},
    "Relu": {},
    "Selu": {},
    "Sigmoid": {},
    "Sign": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"alpha": (0.0, 0.3, 1.0)},
    "Dropout": {},
}


@makes(4, scalars=True)
def unary(d: Drawing, x: str) -> Parts | None:
    op = d.choice(*UNARY)
    attributes = {name: d.choice(*values) for name, values in UNARY[op].items()}
    return op, [x], attributes if d.random.random() < 0.8 else {}


@makes(6, scalars=True)
def binary(d: Drawing, x: str) -> Parts | None:
    ops = {
        "f": ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Sum", "Mean"),
        "b": ("And", "Or", "Xor"),
        "i": ("Add", "Sub", "Mul", "Max", "Min", "Div"),
    }
    kind = d.values[x].dtype.kind
    if kind not in ops:
        return None
    names = [x, d.beside(x)]
    op = d.choice(*ops[kind])
    if op in ("Sum", "Mean", "Max", "Min") and d.random.random() < 0.3:
        names.append(d.beside(x))
    if op != "PRelu" and d.random.random() < 0.5:
        names.reverse()
    return op, names, {}


@makes(3, scalars=True)
def compared(d: Drawing, x: str) -> Parts | None:
    op = d.choice("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")
    names = [x, d.beside(x)]
    return op, names if d.random.random() < 0.5 else names[::-1], {}


@makes(3, scalars=True)
def chosen(d: Drawing, x: str) -> Parts | None:
    masks = [name for name, value in d.values.items() if value.dtype.kind == "b"]
    masks = [name for name in masks if _fit(d.values[name].shape, d.values[x].shape)]
    shape = [size if d.random.random() < 0.6 else 1 for size in d.values[x].shape]
    shape = [1, *shape[1:]] if shape and d.open else shape
    mask = d.choice(*masks) if masks else d.constant(d.numbers.integers(0, 2, shape).astype(bool))
    both = [x, d.beside(x)]
    return "Where", [mask, *(both if d.random.random() < 0.5 else both[::-1])], {}


@makes(3, scalars=True)
def cast(d: Drawing, x: str) -> Parts | None:
    return "Cast", [x], {"to": d.choice(1, 1, 2, 3, 6, 7, 9, 9)}


@makes()
def negated(d: Drawing, x: str) -> Parts | None:
    return "Not", [x], {}


@makes()
def clip(d: Drawing, x: str) -> Parts | None:
    kind = d.values[x].dtype
    ends = [d.constant(one, kind) if d.random.random() < 0.7 else "" for one in (-1, 1)]
    return "Clip", [x, *ends], {}


@makes()
def power(d: Drawing, x: str) -> Parts | None:
    number = d.choice(2, 3, 0, 1, np.float32(2), np.float32(0.5), np.float32(-1))
    return "Pow", [x, d.constant(number if d.random.random() < 0.7 else [number])], {}


@makes(2)
def softmax(d: Drawing, x: str) -> Parts | None:
    return d.choice("Softmax", "LogSoftmax"), [x], {"axis": d.axis(d.values[x])}


@makes(4)
def reduced(d: Drawing, x: str) -> Parts | None:
    names = ("Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp", "LogSum")
    op, value = f"Reduce{d.choice(*names)}", d.values[x]
    attributes = {"keepdims": d.integer(0, 1)}
    axes: list[int] | None = d.some(value.ndim) if value.ndim else None
    if axes is not None and d.open and 0 in axes and len(axes) > 1:
        axes.remove(0)
    if d.random.random() < 0.1:
        axes = None
    if axes is not None and d.random.random() < 0.3:
        axes = [axis - value.ndim for axis in axes]
    if op == "ReduceSum" or d.opset >= 18:
        if d.random.random() < 0.2:
            attributes["noop_with_empty_axes"] = 1
        return op, [x] if axes is None else [x, d.constant(axes, np.int64)], attributes
    return op, [x], attributes if axes is None else {**attributes, "axes": axes}


@makes(2)
def extreme(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    axis = d.axis(value, 1)
    if d.random.random() < 0.5:
        attributes = {"axis": axis, "keepdims": d.integer(0, 1)}
        return (
            d.choice("ArgMax", "ArgMin"),
            [x],
            {**attributes, "select_last_index": d.integer(0, 1)},
        )
    most = d.constant([d.integer(1, max(1, value.shape[axis]))], np.int64)
    return "TopK", [x, most], {"axis": axis, "largest": d.integer(0, 1), "outputs": 2}


@makes(4)
def transposed(d: Drawing, x: str) -> Parts | None:
    order = list(range(d.values[x].ndim))
    d.random.shuffle(order)
    return "Transpose", [x], {"perm": order} if d.random.random() < 0.9 else {}


@makes(3)
def reshaped(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    if d.random.random() < 0.3:
        return "Flatten", [x], {"axis": d.integer(-value.ndim, value.ndim)}
    sizes = list(value.shape)
    place = d.integer(0, max(0, len(sizes) - 2))
    if len(sizes) > 1 and d.random.random() < 0.5:
        sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
    elif sizes:
        sizes[place : place + 1] = d.choice([1, sizes[place]], [sizes[place], 1], [-1])
    if sizes and sizes[0] == RECORDS and d.random.random() < 0.7:
        sizes[0] = 0
    elif sizes and -1 not in sizes and d.random.random() < 0.5:
        sizes[d.integer(0, len(sizes) - 1)] = -1
    return "Reshape", [x, d.constant(sizes, np.int64)], {}


@makes(2)
def other_axes(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    if d.random.random() < 0.5:
        ones = [axis for axis, size in enumerate(value.shape) if size == 1]
        if not ones or d.random.random() < 0.2:
            return "Squeeze", [x], {}
        return "Squeeze", [x, d.constant([d.choice(*ones)], np.int64)], {}
    axes = sorted({d.integer(-value.ndim - 1, value.ndim)})
    return "Unsqueeze", [x, d.constant(axes, np.int64)], {}


@makes(4)
def sliced(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    axes = d.some(value.ndim)
    if d.open and d.random.random() < 0.9:
        axes = [axis for axis in axes if value.shape[axis] != RECORDS] or axes
    starts = [d.choice(0, 0, 1, -1, -2, -100) for _ in axes]
    ends = [d.choice(1, 2, 4, -1, 100, 2**63 - 1, -(2**63)) for _ in axes]
    steps = [d.choice(1, 1, 2, -1, -2) for _ in axes]
    given = (starts, ends, [axis - value.ndim * d.integer(0, 1) for axis in axes], steps)
    return "Slice", [x, *(d.constant(one, np.int64) for one in given)], {}


@makes(2)
def split(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    axis = d.axis(value, 1)
    size = value.shape[axis]
    if d.random.random() < 0.3:
        count = d.integer(1, 3)
        extra = {"num_outputs": count} if d.opset >= 18 else {}
        return "Split", [x], {"axis": axis, "outputs": count, **extra}
    first = d.integer(0, size)
    sizes = d.constant([one for one in (first, size - first) if one], np.int64)
    return "Split", [x, sizes], {"axis": axis, "outputs": d.constants[sizes].size}


@makes(3)
def joined(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    axis = d.axis(value, 1) if d.random.random() < 0.8 else d.axis(value)
    own = [
        name
        for name, one in d.values.items()
        if one.dtype == value.dtype and one.ndim == value.ndim
    ]
    names = [d.choice(*own) for _ in range(d.integer(0, 2))]
    if d.random.random() < 0.4 and value.dtype.kind == "f":
        shape = list(value.shape)
        shape[axis] = d.integer(1, 4)
        names.append(d.draw(*shape))
    names.insert(d.integer(0, len(names)), x)
    return "Concat", names, {"axis": axis}


@makes(3)
def gathered(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    axis = d.axis(value, 1)
    size = value.shape[axis]
    shape = d.choice((), (1,), (2,), (2, 2), (1, 3))
    places = d.constant(d.numbers.integers(-size, size, shape), np.int64)
    if d.random.random() < 0.2:
        whole = [name for name, one in d.values.items() if one.dtype == np.int64]
        if whole:
            return "Gather", [d.draw(4, *d.choice((), (2,), (2, 3))), d.choice(*whole)], {}
    return "Gather", [x, places], {"axis": axis}


@makes(2)
def repeated(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    times = [d.choice(1, 1, 2, 3) for _ in value.shape]
    if d.random.random() < 0.5:
        return "Tile", [x, d.constant(times, np.int64)], {}
    sizes = [
        d.choice(2, 3) if size == 1 and place else size for place, size in enumerate(value.shape)
    ]
    sizes = [1 if d.random.random() < 0.3 else size for size in sizes]
    return (
        "Expand",
        [x, d.constant([2, *sizes] if d.random.random() < 0.2 else sizes, np.int64)],
        {},
    )


@makes(3)
def padded(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    pads = [d.choice(0, 0, 1, 2) for _ in range(2 * value.ndim)]
    if value.ndim and d.random.random() < 0.9:
        pads[0] = pads[value.ndim] = 0
    if d.random.random() < 0.15:
        pads = [-one for one in pads]
    elif d.random.random() < 0.1:
        pads = [one - 1 for one in pads]
    mode = d.choice("constant", "constant", "reflect", "edge")
    number = [d.constant(d.choice(0, 0.5, -2), value.dtype)] if d.random.random() < 0.4 else []
    return "Pad", [x, d.constant(pads, np.int64), *number], {"mode": mode}


@makes()
def triangle(d: Drawing, x: str) -> Parts | None:
    more = [d.constant(d.integer(-2, 2), np.int64)] if d.random.random() < 0.5 else []
    return "Trilu", [x, *more], {"upper": d.integer(0, 1)}


@makes(3)
def product(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    if value.ndim < 1 or value.dtype.kind != "f":
        return None
    way = d.integer(0, 3)
    inner = value.shape[-1]
    if way == 0:
        return (
            "MatMul",
            [x, d.draw(*d.choice((inner, 3), (inner,), (1, inner, 2), (2, inner, 2)))],
            {},
        )
    if way == 1 and value.ndim > 1:
        return "MatMul", [d.draw(*d.choice((3, value.shape[-2]), (value.shape[-2],))), x], {}
    other = d.of_kind("f", value.ndim)
    return ("MatMul", [x, other], {}) if other else None


@makes(3)
def gemm(d: Drawing, x: str) -> Parts | None:
    name = x if d.values[x].ndim == 2 else d.of_kind("f", 2)
    if name is None:
        return None
    value = d.values[name]
    turned, other = d.integer(0, 1), d.integer(0, 1)
    rows, inner = value.shape[::-1] if turned else value.shape
    shape = (4, inner) if other else (inner, 4)
    inputs = [name, d.draw(*shape)]
    if d.random.random() < 0.15:
        inputs, turned, other, rows = [d.draw(4, value.shape[0]), name], 0, 0, 4
        shape = (0, value.shape[1])
    columns = value.shape[1] if inputs[1] == name else 4
    if d.random.random() < 0.8:
        inputs.append(
            d.draw(*d.choice((), (1,), (columns,), (1, columns), (rows, 1), (rows, columns)))
        )
    numbers = {"alpha": d.choice(1.0, 0.5), "beta": d.choice(1.0, 2.0)}
    return "Gemm", inputs, {"transA": turned, "transB": other, **numbers}


@makes()
def einsum(d: Drawing, x: str) -> Parts | None:
    ndim = d.values[x].ndim
    if not 1 <= ndim <= 4:
        return None
    own = "abcd"[:ndim]
    result = "".join(d.random.sample(own, d.integer(1, ndim)))
    if d.random.random() < 0.5:
        return "Einsum", [x], {"equation": f"{own}->{result}"}
    left = d.choice(own[-1] + "e", "e" + own[-1], own[-2:] + "e")
    sizes = {**dict(zip(own, d.values[x].shape, strict=True)), "e": 3}
    result = "".join(one for one in own if one not in left or d.random.random() < 0.2) + "e"
    inputs = [x, d.draw(*(sizes[one] for one in left))]
    terms = [own, left]
    if d.random.random() < 0.4:
        inputs, terms = inputs[::-1], terms[::-1]
    return "Einsum", inputs, {"equation": f"{','.join(terms)}->{result}"}


def windows(d, spatial, most=3):
    found = {}
    if d.random.random() < 0.6:
        found["strides"] = [d.integer(1, 3) for _ in range(spatial)]
    if d.random.random() < 0.6:
        found["pads"] = [d.integer(0, most - 1) for _ in range(2 * spatial)]
    elif d.random.random() < 0.4:
        found["auto_pad"] = d.choice("SAME_UPPER", "SAME_LOWER", "VALID")
    return found


@makes(4)
def convolved(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    if not 3 <= value.ndim <= 5 or value.dtype.kind != "f":
        return None
    spatial, channels = value.ndim - 2, value.shape[1]
    groups = d.choice(1, channels, 2 if channels % 2 == 0 else 1)
    kernel = [d.integer(1, 3) for _ in range(spatial)]
    attributes = {"group": groups, **windows(d, spatial)}
    if d.random.random() < 0.3:
        attributes["dilations"] = [d.integer(1, 2) for _ in range(spatial)]
    if d.random.random() < 0.6:
        outputs = groups * d.integer(1, 2)
        weights, op = d.draw(outputs, channels // groups, *kernel), "Conv"
    else:
        each = d.integer(1, 2)
        outputs, op = groups * each, "ConvTranspose"
        weights = d.draw(channels, each, *kernel)
        if d.random.random() < 0.3:
            attributes["output_padding"] = [d.integer(0, 1) for _ in range(spatial)]
        if d.random.random() < 0.2:
            attributes["output_shape"] = [d.integer(4, 12) for _ in range(spatial)]
    bias = [d.draw(outputs)] if d.random.random() < 0.5 else []
    return op, [x, weights, *bias], attributes


@makes(5)
def pooled(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    if not 3 <= value.ndim <= 5:
        return None
    spatial = value.ndim - 2
    if d.random.random() < 0.15:
        return d.choice("GlobalAveragePool", "GlobalMaxPool"), [x], {}
    op = d.choice("MaxPool", "AveragePool")
    kernel = [d.integer(1, 4) for _ in range(spatial)]
    attributes = {"kernel_shape": kernel, **windows(d, spatial)}
    pads = attributes.get("pads", [])
    both = zip(value.shape[2:], pads[:spatial], pads[spatial:], kernel, strict=False)
    if any(size + before + after < long for size, before, after, long in both):
        return None  # onnxruntime ends the process where no padded window fits
    if d.opset >= 19 or op == "MaxPool":
        attributes["ceil_mode"] = d.integer(0, 1)
    if op == "AveragePool":
        attributes["count_include_pad"] = 0 if attributes.get("ceil_mode") else d.integer(0, 1)
    return op, [x], attributes


@makes(4)
def normalised(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    if value.ndim < 2 or value.dtype.kind != "f":
        return None
    channels = value.shape[1]
    op = d.choice(
        *("BatchNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization"),
        *("LRN", "GroupNormalization"),
    )
    pair = [d.draw(channels), d.draw(channels)]
    if op == "BatchNormalization":
        return op, [x, *pair, d.draw(channels), d.positive(channels)], {"epsilon": 1e-3}
    if op == "InstanceNormalization":
        return op, [x, *pair], {"epsilon": 1e-2}
    if op == "GroupNormalization":
        return op, [x, *pair], {"num_groups": d.choice(1, channels), "epsilon": 1e-2}
    if op == "LpNormalization":
        return op, [x], {"axis": d.axis(value), "p": d.integer(1, 2)}
    if op == "LRN":
        return op, [x], {"size": d.choice(1, 3, 5), "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    axis = d.integer(1, value.ndim - 1)
    shape = [size if d.random.random() < 0.7 else 1 for size in value.shape[axis:]]
    shape = shape[d.choice(0, 0, len(shape) - 1) :]
    more = [d.draw(*shape)] if d.random.random() < 0.5 else []
    sign = d.choice(0, value.ndim)
    return op, [x, d.draw(*shape), *more], {"axis": axis - sign, "epsilon": 1e-2}


@makes(2)
def resized(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    if value.ndim not in (3, 4) or value.dtype.kind != "f":
        return None
    mode = d.choice("nearest", "linear", "cubic")
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": d.choice(
            "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"
        ),
    }
    if mode == "nearest":
        attributes["nearest_mode"] = d.choice(
            "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"
        )
    spatial = value.ndim - 2
    if d.random.random() < 0.5:
        scales = [1, 1, *(d.choice(1.0, 2.0, 3.0, 0.5, 1.5) for _ in range(spatial))]
        return "Resize", [x, "", d.constant(scales, np.float32)], attributes
    sizes = [*value.shape[:2], *(d.integer(1, 9) for _ in range(spatial))]
    return "Resize", [x, "", "", d.constant(sizes, np.int64)], attributes


@makes()
def looked_up(d: Drawing, x: str) -> Parts | None:
    value = d.values[x]
    if value.ndim != 4 or value.dtype.kind != "f" or d.opset < 16:
        return None
    names = ("linear", "nearest", "cubic") if d.opset >= 20 else ("bilinear", "nearest", "bicubic")
    attributes = {
        "mode": d.choice(*names),
        "padding_mode": d.choice("zeros", "border", "reflection"),
        "align_corners": d.integer(0, 1),
    }
    grids = [
        name
        for name, grid in d.values.items()
        if grid.dtype.kind == "f" and grid.ndim == 4 and grid.shape[::3] == (value.shape[0], 2)
    ]
    if not grids:
        return None
    return "GridSample", [x, d.choice(*grids)], attributes


@makes()
def blocks(d: Drawing, x: str) -> Parts | None:
    if d.random.random() < 0.5:
        return "SpaceToDepth", [x], {"blocksize": 2}
    return "DepthToSpace", [x], {"blocksize": 2, "mode": d.choice("DCR", "CRD")}


@makes(3)
def sizes(d: Drawing, x: str) -> Parts | None:
    """Sizes, which are constant where all are known."""
    if d.random.random() < 0.2:
        return "Size", [x], {}
    ends = {"start": d.integer(-2, 2)} if d.opset >= 15 and d.random.random() < 0.7 else {}
    return "Shape", [x], ends


@makes(2)
def by_sizes(d: Drawing, x: str) -> Parts | None:
    """What exporters do with sizes that they compute."""
    whole = [name for name, one in d.values.items() if one.dtype == np.int64 and one.ndim < 2]
    if not whole:
        return None
    name = d.choice(*whole)
    if d.values[name].ndim == 0:
        return "Range", [d.constant(0, np.int64), name, d.constant(1, np.int64)], {}
    op = d.choice("ConstantOfShape", "Expand", "Reshape", "Tile")
    return op, [name] if op == "ConstantOfShape" else [x, name], {}
