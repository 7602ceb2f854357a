"""No layer type does worse than refuse, whatever shapes and options come."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparknet.errors import LayerError, SpecError
from sparknet.layers import LAYERS, make
from sparknet.proto import caffe_pb2

SHAPES = st.lists(st.integers(0, 4), max_size=5).map(tuple)
NUMBERS = {
    "TYPE_BOOL": st.booleans(),
    "TYPE_FLOAT": st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, 1e30, float("nan"), float("inf")]),
    "TYPE_DOUBLE": st.sampled_from([0.0, 1.0, -1.0]),
    "TYPE_INT32": st.sampled_from([0, 1, 2, 3, -1, -2, 2**31 - 1, -(2**31)]),
    "TYPE_UINT32": st.sampled_from([0, 1, 2, 3, 2**32 - 1]),
    "TYPE_INT64": st.sampled_from([0, 1, 2, -1, 2**62]),
    "TYPE_STRING": st.sampled_from(["", "xavier", "gaussian", "no/such", "\0", "e" * 300]),
}
KINDS = {
    getattr(caffe_pb2.DESCRIPTOR.message_types_by_name["Datum"].fields[0], name): name
    for name in NUMBERS
}


def _fill(message, draw, depth=0):
    """Random options, most of them left out."""
    for field in message.DESCRIPTOR.fields:
        if draw(st.integers(0, 3)):
            continue
        times = draw(st.integers(0, 3)) if _repeated(message, field) else 1
        for _ in range(times):
            _set(message, field, draw, depth)


def _repeated(message, field):
    return hasattr(getattr(message, field.name), "append") or hasattr(
        getattr(message, field.name), "add"
    )


def _set(message, field, draw, depth):
    repeated = _repeated(message, field)
    if field.message_type is not None:
        if depth < 2:
            inner = getattr(message, field.name)
            _fill(inner.add() if repeated else inner, draw, depth + 1)
        return
    if field.enum_type is not None:
        value = draw(st.sampled_from([v.number for v in field.enum_type.values]))
    elif field.type in KINDS:
        value = draw(NUMBERS[KINDS[field.type]])
    else:
        return
    if repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


@pytest.mark.parametrize("type_name", sorted(LAYERS))
@settings(max_examples=15, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_a_plan_or_a_refusal(type_name, data):
    kind = LAYERS[type_name]
    most = kind.bottoms.most if kind.bottoms.most is not None else kind.bottoms.least + 2
    shapes = [data.draw(SHAPES) for _ in range(data.draw(st.integers(kind.bottoms.least, most)))]
    same: bool = data.draw(st.booleans())
    if shapes and same:
        shapes = [shapes[0]] * len(shapes)
    most = kind.tops.most if kind.tops.most is not None else kind.tops.least + 2
    parameter = caffe_pb2.LayerParameter(
        name="l",
        type=type_name,
        bottom=[f"b{i}" for i in range(len(shapes))],
        top=[f"t{i}" for i in range(data.draw(st.integers(kind.tops.least, most)))],
    )
    for field in (kind.field, *kind.fields):
        if field is not None:
            _fill(getattr(parameter, field), data.draw)
    problem: SpecError | None = None
    try:
        make(parameter, data.draw(st.sampled_from([0, 1]))).plan(shapes)
    except SpecError as error:
        problem = error
    if problem is not None:
        assert isinstance(problem, LayerError)
        assert problem.layer == "l"
        assert "\n" not in str(problem)
