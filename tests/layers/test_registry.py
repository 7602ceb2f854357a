import pytest

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, Layer, make
from sparknet.layers.layer import layer as register
from sparknet.proto import caffe_pb2
from tests.goldens import GOLDENS
from tests.layers.nets import layer


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


@pytest.mark.parametrize(
    ("type_name", "bottoms", "tops", "says"),
    [
        ("LRN", 2, 1, "LRN: takes 1 bottom; it has 2"),
        ("LRN", 1, 0, "LRN: takes 1 top; it has 0"),
        ("Crop", 3, 1, "Crop: takes 2 bottoms; it has 3"),
        ("Pooling", 1, 3, "Pooling: takes 1 to 2 tops; it has 3"),
        ("Concat", 0, 1, "Concat: takes at least 1 bottom; it has 0"),
        ("Deconvolution", 2, 1, "it has 2 bottoms and 1 top"),
    ],
)
def test_counts(type_name, bottoms, tops, says):
    with pytest.raises(LayerError, match=says):
        layer(type_name, "", bottoms, tops)


def test_stock_types_are_those_that_caffe_names():
    """Its message about an unknown type was recorded up to LSTMU…, by a build without OpenCV."""
    said = (GOLDENS / "errors" / "index.json").read_text()
    names = said.partition("known types: ")[2].partition(", LSTMU")[0].split(", ")
    stock = {name for name in LAYERS if LAYERS[name].is_stock and name < "LSTMU"}
    assert stock == {*names, "ImageData"}
