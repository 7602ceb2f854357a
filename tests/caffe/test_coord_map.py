import pytest

from sparknet.caffe import coord_map as cm
from sparknet.caffe import layers as L
from sparknet.caffe.net_spec import Top
from sparknet.errors import SpecError


def data() -> Top:
    top: Top = L.Input(shape={"dim": [1, 1, 100, 100]})
    return top


def convolution(bottom, **options):
    top: Top = L.Convolution(bottom, num_output=1, **options)
    return top


def test_windows():
    x = data()
    top = convolution(x, kernel_size=3, stride=2, pad=1)
    axis, scale, shift = cm.coord_map_from_to(top, x)
    assert (axis, scale.tolist(), shift.tolist()) == (1, [2.0], [0.0])
    dilated = convolution(x, kernel_size=3, dilation=4)
    assert cm.coord_map_from_to(dilated, x)[2].tolist() == [4.0]
    pool = L.Pooling(x, pooling_param={"kernel_size": 4, "stride": 4})
    assert cm.coord_map_from_to(pool, x)[1].tolist() == [4.0]


def test_pass_through_and_back():
    x = data()
    pool = L.Pooling(L.ReLU(x), kernel_size=2, stride=2)
    up = L.Deconvolution(pool, convolution_param={"kernel_size": 2, "stride": 2})
    axis, scale, shift = cm.coord_map_from_to(up, x)
    assert (axis, scale.tolist(), shift.tolist()) == (1, [1.0], [0.0])


def test_crops():
    x = data()
    made = cm.crop(convolution(x, kernel_size=5, pad=10), x)
    assert made.fn.params == {"crop_param": {"axis": 2, "offset": [8]}}
    made = cm.crop(convolution(x, kernel_size=[5, 3], pad=[10, 3]), x)
    assert made.fn.params["crop_param"]["offset"] == [8, 2]
    again = cm.crop(made, made)
    assert again.fn.params["crop_param"] == {"axis": 2, "offset": [0]}
    assert cm.coord_map_from_to(made, x)[2].tolist() == [0.0, 0.0]


def test_thirds_are_whole_enough():
    x = data()
    top = L.Pooling(x, kernel_size=3, stride=3)
    top = L.Deconvolution(top, convolution_param={"kernel_size": 9, "stride": 3})
    assert cm.crop(top, x).fn.params["crop_param"]["offset"] == [3]


def test_a_lattice_is_walked_once():
    top = x = data()
    for _ in range(200):
        top = L.Eltwise(top, top)
    assert cm.coord_map_from_to(top, x)[0] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_size": 3, "stride": 2}, "unlike scale"),
        ({"kernel_size": 3}, "negative width"),
        ({"kernel_size": 2, "pad": 3}, "fraction of a pixel"),
        ({"kernel_h": 2, "kernel_w": 2}, "kernel_h"),
        ({}, "without kernel_size"),
        ({"kernel_size": 3, "stride": 0}, "stride 0"),
    ],
)
def test_refused_crops(options, message):
    x = data()
    with pytest.raises(AssertionError, match=message) as caught:
        cm.crop(convolution(x, **options), x)
    assert isinstance(caught.value, SpecError)


def test_unconnected():
    x = data()
    with pytest.raises(RuntimeError, match="spatial layers do not connect them"):
        cm.coord_map_from_to(x, L.InnerProduct(x))
    with pytest.raises(cm.UndefinedMapException, match="InnerProduct"):
        cm.coord_map(L.InnerProduct(x).fn)
    odd = L.Convolution(convolution(x, kernel_size=1), kernel_size=1, axis=2)
    with pytest.raises(cm.AxisMismatchException, match="axis"):
        cm.coord_map_from_to(odd, x)
