"""Fields set from keywords: what is taken, what is refused and in which words."""

import math
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from sparknet.dsl.fields import default_text, set_fields, shortest
from sparknet.proto import caffe_pb2


def fail(message: str) -> NoReturn:
    raise ValueError(message)


def filled(message_class, **values):
    message = message_class()
    set_fields(message, values, fail)
    return message


def refused(message_class, **values):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        filled(message_class, **values)
    return str(caught.value)


def test_each_kind_of_value():
    made = filled(
        caffe_pb2.ConvolutionParameter,
        num_output=np.int64(7),
        bias_term=np.bool_(False),
        kernel_size=(3, 5),
        stride=2,
        pad=np.array([1, 2]),
        weight_filler="xavier",
        bias_filler={"type": "constant", "value": np.float32(0.5)},
        engine="caffe",
        group=None,
    )
    assert made.num_output == 7
    assert made.HasField("bias_term")
    assert not made.bias_term
    assert list(made.kernel_size) == [3, 5]
    assert list(made.stride) == [2]
    assert list(made.pad) == [1, 2]
    assert made.weight_filler.type == "xavier"
    assert made.bias_filler.value == 0.5
    assert made.engine == caffe_pb2.ConvolutionParameter.CAFFE
    assert not made.HasField("group")


def test_a_number_is_an_enum_value_if_it_is_one():
    assert filled(caffe_pb2.PoolingParameter, pool=1).pool == caffe_pb2.PoolingParameter.AVE
    assert refused(caffe_pb2.PoolingParameter, pool=7) == (
        "pool: 7 is none of MAX, AVE, STOCHASTIC"
    )
    assert refused(caffe_pb2.PoolingParameter, pool=True).startswith("pool: True is none of")


@pytest.mark.parametrize(
    ("message_class", "values", "sentence"),
    [
        ("PoolingParameter", {"pool": "maxx"}, "pool: 'maxx' is none of MAX, AVE, STOCHASTIC; "
         "did you mean 'MAX'?"),
        ("PoolingParameter", {"pad": -1}, "pad: -1 does not fit uint32 (0 to 4294967295)"),
        ("PoolingParameter", {"pad": 2**32},
         "pad: 4294967296 does not fit uint32 (0 to 4294967295)"),
        ("PoolingParameter", {"pad": 2.0}, "pad: 2.0 is not an integer"),
        ("PoolingParameter", {"pad": True}, "pad: True is not an integer"),
        ("PoolingParameter", {"pad": "2"}, "pad: '2' is not an integer"),
        ("PoolingParameter", {"pad": [2]}, "pad: [2] is not an integer"),
        ("PoolingParameter", {"global_pooling": 1}, "global_pooling: 1 is not a bool"),
        ("LRNParameter", {"beta": False}, "beta: False is not a number"),
        ("LRNParameter", {"beta": "0.75"}, "beta: '0.75' is not a number"),
        ("LRNParameter", {"beta": 1e39}, "beta: 1e+39 does not fit float"),
        ("LRNParameter", {"beta": 10**400}, "beta: 1000000000000000000000000000000000000000000000"
         "00000000000... does not fit float"),
        ("FillerParameter", {"type": 3}, "type: 3 is not a string"),
        ("FillerParameter", {"type": b"xavier"}, "type: b'xavier' is not a string"),
        ("FillerParameter", {"type": "\ud800"}, "type: '\\ud800' is not valid Unicode"),
        ("SliceParameter", {"slice_point": [1, 2.5]}, "slice_point[1]: 2.5 is not an integer"),
        ("InnerProductParameter", {"weight_filler": {"stdd": 1}},
         "weight_filler has no field 'stdd'; did you mean 'std'?"),
        ("InnerProductParameter", {"weight_filler": {"std": "wide"}},
         "weight_filler.std: 'wide' is not a number"),
        ("InnerProductParameter", {"weight_filler": 0.1},
         "weight_filler takes a type or a dict of FillerParameter fields, not 0.1"),
        ("InnerProductParameter", {"weight_filler": caffe_pb2.BlobShape()},
         "weight_filler takes FillerParameter, not BlobShape"),
        ("InputParameter", {"shape": [[1, 2], [3, "x"]]},
         "shape[1].dim[1]: 'x' is not an integer"),
        ("LayerParameter", {"include": "TRIAN"},
         "include.phase: 'TRIAN' is none of TRAIN, TEST; did you mean 'TRAIN'?"),
    ],
)  # fmt: skip
def test_refusals(message_class, values, sentence):
    assert refused(getattr(caffe_pb2, message_class), **values) == sentence


def test_shapes_as_lists():
    one = filled(caffe_pb2.InputParameter, shape=[2, 3])
    assert [list(s.dim) for s in one.shape] == [[2, 3]]
    two = filled(caffe_pb2.InputParameter, shape=[[2, 3], [4]])
    assert [list(s.dim) for s in two.shape] == [[2, 3], [4]]
    named = filled(caffe_pb2.InputParameter, shape={"dim": [2, 3]})
    assert named == one
    array = filled(caffe_pb2.InputParameter, shape=np.array([2, 3]))
    assert array == one


def test_messages_are_copied():
    filler = caffe_pb2.FillerParameter(type="msra")
    made = filled(caffe_pb2.InnerProductParameter, weight_filler=filler)
    filler.type = "changed"
    assert made.weight_filler.type == "msra"


def test_an_empty_dict_leaves_an_empty_message():
    assert filled(caffe_pb2.LayerParameter, relu_param={}).HasField("relu_param")


def test_paths_and_bytes():
    assert filled(caffe_pb2.DataParameter, source=Path("a/b")).source == "a/b"
    assert filled(caffe_pb2.Datum, data="ab").data == b"ab"
    assert filled(caffe_pb2.Datum, data=b"\xff").data == b"\xff"


def test_infinity_and_nan_are_numbers():
    assert filled(caffe_pb2.LRNParameter, beta=math.inf).beta == math.inf
    assert math.isnan(filled(caffe_pb2.LRNParameter, beta=math.nan).beta)


def test_shortest():
    assert repr(shortest(np.float32(0.1).item())) == "0.1"
    assert repr(shortest(np.float32(1e-10).item())) == "1e-10"


@pytest.mark.parametrize(
    ("message_class", "field", "text"),
    [
        ("PoolingParameter", "pool", "MAX|AVE|STOCHASTIC = 'MAX'"),
        ("LRNParameter", "beta", "float = 0.75"),
        ("ConvolutionParameter", "kernel_size", "uint32, or a list of them"),
        ("ConvolutionParameter", "bias_term", "bool = True"),
        ("ConvolutionParameter", "num_output", "uint32"),
        ("ConvolutionParameter", "weight_filler", "FillerParameter"),
    ],
)
def test_default_text(message_class, field, text):
    fields = getattr(caffe_pb2, message_class).DESCRIPTOR.fields_by_name
    assert default_text(fields[field]) == text
