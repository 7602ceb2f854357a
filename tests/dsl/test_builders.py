"""A builder for every type: its keywords, its documentation, and any values in them."""

import inspect
import pickle
from keyword import iskeyword

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import sparknet.dsl as dsl
from sparknet.dsl import CaffeLayer, Convolution, LayerSpec, NetParams, Pooling
from sparknet.dsl.builders import COMMON
from sparknet.dsl.fields import EXTRA, FOREIGN, OWN, option_fields
from sparknet.errors import LayerError
from sparknet.layers import LAYERS
from sparknet.proto import caffe_pb2, parse_net
from tests.dsl.nets import rebuilt
from tests.dsl.values import TEXT, values

LAYER_FIELDS = {
    name: field
    for name, field in caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name.items()
    if name not in FOREIGN
}


def refused(*args, build=Convolution, **options):
    with pytest.raises(LayerError) as caught:
        build(*args, **options)
    return str(caught.value)


@pytest.mark.parametrize("type_name", sorted(LAYERS))
def test_every_type_has_a_documented_builder(type_name):
    build = getattr(dsl, type_name)
    assert build.__name__ == type_name
    assert type_name in dir(dsl)
    assert type_name in dsl.__all__
    parameters = inspect.signature(build).parameters
    assert list(parameters)[:2] == ["name", "bottoms"]
    layer = LAYERS[type_name]
    groups = [group for group in (layer.field, *layer.fields) if group]
    for group in groups:
        for field in LAYER_FIELDS[group].message_type.fields:
            if not iskeyword(field.name) and field.name not in OWN:
                assert field.name in parameters
                assert f"{field.name}: " in build.__doc__
    assert pickle.loads(pickle.dumps(build)) is build


def test_no_option_hides_a_field_of_the_layer_itself():
    for type_name in LAYERS:
        layer = LAYERS[type_name]
        for group in (layer.field, *layer.fields):
            for field in LAYER_FIELDS[group].message_type.fields if group else ():
                assert field.name not in LAYER_FIELDS or field.name in OWN
                assert field.name not in EXTRA


def test_common_and_own_are_fields():
    assert set(COMMON) | set(OWN) <= set(LAYER_FIELDS)


def test_everything_can_be_imported():
    space = {}
    exec("from sparknet.dsl import *", space)
    assert {"NetParams", "Convolution", "SoftmaxWithLoss", *LAYERS} <= set(space)


def test_one_layer():
    made = Convolution(
        "conv",
        "data",
        num_output=8,
        kernel_size=3,
        weight_filler="msra",
        lr_mult=[1, 2],
        decay_mult=[1, 0],
        loss_weight=0.5,
        include=["TRAIN", {"phase": "test", "stage": ["a", "b"]}],
        propagate_down=True,
        phase="TEST",
    ).to_proto()
    want = caffe_pb2.LayerParameter(name="conv", type="Convolution", bottom=["data"], top=["conv"])
    want.convolution_param.num_output = 8
    want.convolution_param.kernel_size.append(3)
    want.convolution_param.weight_filler.type = "msra"
    want.param.add(lr_mult=1, decay_mult=1)
    want.param.add(lr_mult=2, decay_mult=0)
    want.loss_weight.append(0.5)
    want.include.add(phase=caffe_pb2.TRAIN)
    want.include.add(phase=caffe_pb2.TEST, stage=["a", "b"])
    want.propagate_down.append(True)
    want.phase = caffe_pb2.TEST
    assert made == want


def test_bottoms_and_tops():
    data = dsl.Input("data", shape=[1, 2])
    assert Pooling("p", data).bottoms == ("data",)
    assert Pooling("p", [data, "x"]).bottoms == ("data", "x")
    assert Pooling("p", bottom="x", top=["a", "b"]).tops == ("a", "b")
    assert Pooling("p", "x", in_place=True).tops == ("x",)
    assert dsl.Silence("s", "x").tops == ()
    assert dsl.SoftmaxWithLoss("loss", ["a", "b"], tops=[]).tops == ()
    two = dsl.Slice("two", "x", tops=["l", "r"])
    assert refused("p", two, build=Pooling) == (
        "layer 'p': bottom 'two' is a layer whose tops are 'l', 'r'; name one of them"
    )
    assert refused("p", 3, build=Pooling) == (
        "layer 'p': bottom 3 is neither a blob name nor a layer"
    )
    assert refused("p", {"x": 1}, build=Pooling).startswith("layer 'p': bottom {'x': 1} is neither")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_filters": 3}, "Convolution has no field 'num_filters'; did you mean 'num_output'?"),
        ({"num_outputs": 3}, "Convolution has no field 'num_outputs'; did you mean 'num_output'?"),
        ({"kernelsize": 3}, "Convolution has no field 'kernelsize'; did you mean 'kernel_size'?"),
        ({"num_output": 2.5}, "num_output: 2.5 is not an integer"),
        ({"type": "x"}, "Convolution has no field 'type'"),
        ({"lr_mult": 1, "param": {}}, "lr_mult and param exclude each other"),
        ({"lr_mult": "fast"}, "lr_mult: 'fast' is not a number"),
        ({"in_place": True, "tops": "x"}, "in_place and tops exclude each other"),
        ({"in_place": 1}, "in_place: 1 is not a bool"),
        ({"convolution_param": 3},
         "convolution_param takes a dict of ConvolutionParameter fields, not 3"),
    ],
)  # fmt: skip
def test_refusals_name_layer_field_and_value(options, sentence):
    said = refused("conv1", "data", **options)
    assert said.startswith(f"layer 'conv1': {sentence}")


def test_required_fields():
    options = {"type": "PSROIPooling", "psroi_pooling_param": {"output_dim": 2, "group_size": 3}}
    assert refused("r", "x", build=CaffeLayer, **options) == (
        "layer 'r': psroi_pooling_param.spatial_scale is required"
    )


def test_in_place_needs_a_bottom():
    assert refused("c", in_place=True) == "layer 'c': in_place needs a bottom"
    assert refused(3) == "layer '3': name: 3 is not a string"


def test_unknown_types_have_a_builder_too():
    made = CaffeLayer("x", "y", type="MyOwn", permute_param={"order": [0, 2]}, loss_weight=1)
    assert made.type == "MyOwn"
    assert list(made.to_proto().permute_param.order) == [0, 2]
    assert repr(made) == (
        'CaffeLayer("x", ["y"], type="MyOwn", loss_weight=1, permute_param=dict(order=[0, 2]))'
    )
    with pytest.raises(AttributeError, match="no attribute 'Convolutoin'"):
        dsl.Convolutoin  # noqa: B018


def test_a_layer_is_frozen_and_compares_by_content():
    made = Pooling("p", "x", kernel_size=2)
    assert made == Pooling("p", "x", kernel_size=2)
    assert hash(made) == hash(Pooling("p", "x", kernel_size=2))
    assert made != Pooling("p", "x", kernel_size=3)
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(AttributeError, match="cannot be changed"):
        made.name = "q"
    made.to_proto().name = "q"
    assert made.name == "p"


@st.composite
def layers(draw: st.DrawFn) -> LayerSpec:
    type_name = draw(st.sampled_from(sorted(LAYERS)))
    flat = {key: field for key, (_, field) in option_fields(type_name).items()}
    every = flat | {k: f for k, f in LAYER_FIELDS.items() if k not in OWN}
    chosen = draw(st.lists(st.sampled_from([*flat, *every]), unique=True, max_size=5))
    options = {key: draw(values(every[key])) for key in chosen}
    groups = {group for key, (group, _) in option_fields(type_name).items() if key in options}
    options = {key: value for key, value in options.items() if key not in groups}
    names = st.lists(TEXT, max_size=2)
    tops = draw(st.none() | names)
    try:
        build = getattr(dsl, type_name)
        net: LayerSpec = build(draw(TEXT), draw(names), tops=tops, **options)
    except LayerError as error:
        if "is required" not in str(error):  # some forks' messages have required fields
            raise
        reject()
    return net


@settings(max_examples=50)
@given(TEXT, TEXT)
def test_any_type_name_comes_back(name, type_name):
    net = NetParams("n", CaffeLayer(name, type=type_name, tops=[]), check=False)
    assert rebuilt(net.to_source()) == net


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(layers(), TEXT)
def test_any_values_come_back_from_text_and_source(layer, name):
    net = NetParams(name, layer, check=False)
    assert rebuilt(net.to_source()) == net
    assert parse_net(net.to_prototxt()) == net.to_proto()
    assert pickle.loads(pickle.dumps(net)) == net
