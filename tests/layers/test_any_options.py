"""Whatever a file says, a layer gives a plan of bounded, plain values or a `LayerError`."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, Layer, Shape, make
from sparknet.layers.layer import MAX_COUNT, count
from sparknet.proto import caffe_pb2

INTEGERS = st.one_of(st.integers(0, 4), st.sampled_from([-3, -2, -1, 5, 2**16, 2**31 - 1]))
WIDE = st.sampled_from([2**31, 2**32 - 1])
FLOATS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 1e30, float("nan"), float("inf")])
STRINGS = st.sampled_from(
    ["", "constant", "xavier", "bilinear", "no such", "no/such", "\0", "e" * 200]
)
SIZES = st.one_of(st.integers(0, 9), st.sampled_from([2**15, 2**31 - 1]))
SHAPES = st.lists(SIZES, max_size=5).map(tuple)


def _value(field, draw):
    if field.enum_type is not None:
        return draw(st.sampled_from([value.number for value in field.enum_type.values]))
    if field.type == field.TYPE_BOOL:
        return draw(st.booleans())
    if field.type == field.TYPE_UINT32:
        return abs(draw(st.one_of(INTEGERS, WIDE)))
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return draw(FLOATS)
    if field.cpp_type == field.CPPTYPE_STRING:
        return draw(STRINGS)
    return draw(INTEGERS)


def _fill(message, draw, depth=0):
    for field in message.DESCRIPTOR.fields:
        if not draw(st.booleans()):
            continue
        target = getattr(message, field.name)
        if field.message_type is not None:
            if depth < 2:
                many = hasattr(target, "add")
                _fill(target.add() if many else target, draw, depth + 1)
        elif hasattr(target, "append"):
            target.extend(_value(field, draw) for _ in range(draw(st.integers(0, 3))))
        else:
            setattr(message, field.name, _value(field, draw))


@st.composite
def layers_and_bottoms(draw, type_name):
    kind = LAYERS[type_name]
    parameter = caffe_pb2.LayerParameter(name="l", type=type_name)
    numbers = [
        st.integers(many.least, many.least + 2 if many.most is None else many.most)
        for many in (kind.bottoms, kind.tops)
    ]
    bottoms = [draw(SHAPES) for _ in range(draw(numbers[0]))]
    if draw(st.booleans()):
        bottoms = bottoms[:1] * len(bottoms)
    parameter.bottom.extend(f"b{i}" for i in range(len(bottoms)))
    parameter.top.extend(f"t{i}" for i in range(draw(numbers[1])))
    for field in (kind.field, *kind.fields):
        if field is not None:
            _fill(getattr(parameter, field), draw)
    return parameter, bottoms


@pytest.mark.parametrize("type_name", sorted(set(LAYERS) - {"Python"}))
def test_plan_or_layer_error(type_name):
    @settings(max_examples=35, database=None, suppress_health_check=list(HealthCheck))
    @given(layers_and_bottoms(type_name), st.sampled_from([caffe_pb2.TRAIN, caffe_pb2.TEST]))
    def check(case, phase):
        parameter, bottoms = case
        try:
            layer = make(parameter, phase)
            _check_plan(layer, bottoms)
        except LayerError as error:
            refusal = error
        else:
            return
        assert refusal.layer == "l"
        assert "\n" not in str(refusal)
        assert len(str(refusal)) < 1000

    check()


def _check_plan(layer: Layer, bottoms: list[Shape]) -> None:
    plan = layer.plan(bottoms)
    assert len(plan.tops) == max(len(layer.parameter.top), layer.tops.least)
    for shape in (*plan.tops, *(param.shape for param in plan.params)):
        assert all(type(size) is int and 0 <= size <= MAX_COUNT for size in shape)
        assert count(shape) <= MAX_COUNT
    for name, value in plan.values.items():
        assert _is_plain(value), (name, value)


def _is_plain(value):
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, caffe_pb2.FillerParameter):
        return True
    return value is None or type(value) in (bool, int, float, str)
