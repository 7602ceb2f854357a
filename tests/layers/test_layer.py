from collections.abc import Sequence

import pytest

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, Layer, Param, Plan, Shape
from sparknet.layers.fillers import constant
from sparknet.layers.layer import (
    EVERY,
    MAX_COUNT,
    Arity,
    at_least,
    between,
    count,
    exactly,
    shape_text,
)
from sparknet.proto import caffe_pb2


class Echo(Layer):
    """Gives the plan it is told."""

    type = "Echo"
    works_in_place = True
    told = Plan(((),))

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return self.told


def _echo(told: Plan, bottom: str = "x", top: str = "y") -> Plan:
    layer = Echo(caffe_pb2.LayerParameter(name="l", bottom=[bottom], top=[top]), 0)
    layer.told = told
    return layer.plan([(2, 3)])


@pytest.mark.parametrize(
    "shape", [(), (0,), (MAX_COUNT,), (MAX_COUNT, 0, MAX_COUNT), (1,) * 32, (2, 3)]
)
def test_sizes_that_caffe_takes(shape):
    assert _echo(Plan((shape,))).tops == (shape,)


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((MAX_COUNT + 1,), "more than 2147483647 values"),
        ((2**16, 2**16), "more than 2147483647 values: 65536 x 65536"),
        ((0, 2**40), "more than 2147483647 values"),
        ((2, -1), "negative size: 2 x -1"),
        ((1,) * 33, "33 axes; 32 is the most"),
    ],
)
def test_sizes_that_caffe_refuses(shape, says):
    with pytest.raises(LayerError, match=f"top 0 would have .*{says}"):
        _echo(Plan((shape,)))
    with pytest.raises(LayerError, match=f"parameter 0 would have .*{says}"):
        _echo(Plan(((2, 3),), (Param(shape, constant(0)),)))


def test_in_place_keeps_the_shape():
    assert _echo(Plan(((2, 3),)), "x", "x").tops == ((2, 3),)
    with pytest.raises(LayerError, match=r"in place on 'x': .* 2 x 3 into 6"):
        _echo(Plan(((6,),)), "x", "x")


def test_copied_options_are_as_they_are_given():
    """Enumerations are words, lists tuples; what `infer` says itself counts."""

    class Boxes(Echo):
        field = "yolov3_detection_output_param"
        plain_options = ("num_classes",)

    class Masked(Boxes):
        plain_options = ("biases",)

    class Matched(Echo):
        field = "multibox_loss_param"
        plain_options = ("match_type",)

    given = caffe_pb2.LayerParameter()
    given.yolov3_detection_output_param.biases.extend([1, 2.5])
    given.yolov3_detection_output_param.num_classes = 7
    given.multibox_loss_param.match_type = caffe_pb2.MultiBoxLossParameter.BIPARTITE
    assert Matched(given, 0).plan([(2, 3)]).values == {"match_type": "bipartite"}
    assert Masked(given, 0).plan([(2, 3)]).values == {"num_classes": 7, "biases": (1.0, 2.5)}
    Masked.told = Plan(((),), values={"biases": None, "more": 1})
    found = Masked(given, 0).plan([(2, 3)]).values
    assert found == {"num_classes": 7, "biases": None, "more": 1}


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_copied_options_are_the_types_own(name):
    kinds = [vars(kind).get("plain_options", ()) for kind in LAYERS[name].__mro__]
    plain_options = {option for options in kinds for option in options}
    field = LAYERS[name].field
    fields = caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name
    assert plain_options - {*EVERY} <= (
        set(fields[field].message_type.fields_by_name) if field else set()
    )


def test_arity():
    assert exactly(2) == Arity(2, 2)
    assert [between(1, 2).accepts(n) for n in range(4)] == [False, True, True, False]
    assert at_least(1).accepts(1000)
    assert [str(arity) for arity in (exactly(1), at_least(2), between(1, 2))] == [
        "1",
        "at least 2",
        "1 to 2",
    ]


def test_shape_words():
    assert shape_text((2, 3)) == "2 x 3"
    assert shape_text(()) == "scalar"
    assert count(()) == 1
    assert count((2, 0, 3)) == 0
