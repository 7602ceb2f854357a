import pytest

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, Layer, make
from sparknet.layers.layer import layer as register
from sparknet.proto import caffe_pb2
from tests.goldens import GOLDENS


@pytest.mark.parametrize("name", LAYERS)
def test_a_type_has_a_class_of_its_name(name):
    assert issubclass(LAYERS[name], Layer)
    assert (LAYERS[name].type, LAYERS[name].__name__.removesuffix("Layer")) == (name, name)
    fields = caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name
    assert {LAYERS[name].field or "name", *LAYERS[name].fields} <= set(fields)


def test_it_is_a_mapping():
    assert "Pooling" in LAYERS
    assert "pooling" not in LAYERS
    assert list(LAYERS) == sorted(LAYERS.keys())
    assert len(LAYERS) == len(set(LAYERS)) > 130
    with pytest.raises(KeyError):
        LAYERS["Pool"]


def test_a_name_has_one_class():
    pooling = LAYERS["Pooling"]
    assert register("Pooling", stock=True)(pooling) is pooling
    with pytest.raises(ValueError, match="two classes for layer type 'Pooling'"):
        register("Pooling")(LAYERS["SPP"])
    assert (LAYERS["Pooling"], LAYERS["SPP"].type) == (pooling, "SPP")


@pytest.mark.parametrize(
    ("asked", "meant"), [("Convolutoin", "Convolution"), ("innerproduct", "InnerProduct")]
)
def test_unknown_type(asked, meant):
    with pytest.raises(LayerError) as caught:
        make(caffe_pb2.LayerParameter(name="l", type=asked), 0)
    assert str(caught.value) == (
        f"layer 'l': unknown type '{asked}'; did you mean '{meant}'? "
        f"sparknet knows {len(LAYERS)} layer types"
    )


def test_no_type():
    with pytest.raises(LayerError, match="has no type"):
        make(caffe_pb2.LayerParameter(name="l"), 0)


def test_stock_types_are_those_that_caffe_names():
    """Its message about an unknown type was recorded up to LSTMU…, by a build without OpenCV."""
    said = (GOLDENS / "errors" / "index.json").read_text()
    names = said.partition("known types: ")[2].partition(", LSTMU")[0].split(", ")
    stock = {name for name in LAYERS if LAYERS[name].is_stock and name < "LSTMU"}
    assert stock == {*names, "ImageData"}
