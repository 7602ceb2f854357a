"""BatchNorm, LRN and MVN: what a plan says beyond shapes."""

import pytest

from sparknet.errors import LayerError
from sparknet.layers import TEST, make
from sparknet.proto import caffe_pb2
from tests.layers.nets import plan, shapes_of_params


def test_statistics_are_three_blobs_of_zeros():
    found = plan("BatchNorm", "", (4, 3, 5))
    assert found.tops == ((4, 3, 5),)
    assert shapes_of_params(found) == [(3,), (3,), (1,)]
    assert all(param.filler.value == 0 for param in found.params)
    assert found.values["use_global_stats"] is False
    assert found.values["eps"] == pytest.approx(1e-5)
    assert found.values["moving_average_fraction"] == pytest.approx(0.999)


def test_global_stats_follow_the_phase_unless_given():
    parameter = caffe_pb2.LayerParameter(type="BatchNorm", bottom=["x"], top=["x"])
    assert make(parameter, TEST).plan([(2, 3)]).values["use_global_stats"] is True
    parameter.batch_norm_param.use_global_stats = False
    assert make(parameter, TEST).plan([(2, 3)]).values["use_global_stats"] is False


def test_statistics_cannot_be_trained():
    layer = make(
        caffe_pb2.LayerParameter(name="l", type="BatchNorm", bottom=["x"], top=["y"]), TEST
    )
    assert layer.freezes_by_default
    layer.check_params([caffe_pb2.ParamSpec(lr_mult=0)])
    with pytest.raises(LayerError, match="param 1 must have lr_mult 0; it has 1"):
        layer.check_params([caffe_pb2.ParamSpec(lr_mult=0), caffe_pb2.ParamSpec()])


def test_values():
    found = plan("LRN", "", (2, 3, 4, 5))
    assert found.tops == ((2, 3, 4, 5),)
    assert shapes_of_params(found) == []
    assert found.values == {
        "local_size": 5,
        "alpha": 1.0,
        "beta": 0.75,
        "k": 1.0,
        "norm_region": "across_channels",
    }
    within = plan("LRN", "lrn_param { norm_region: WITHIN_CHANNEL }", (2, 3, 4, 5))
    assert within.values["norm_region"] == "within_channel"


def test_always_four_axes():
    found = plan("MVN", "", (2, 3))
    assert found.tops == ((2, 3, 1, 1),)
    assert shapes_of_params(found) == []
    assert found.values["normalize_variance"] is True
    assert found.values["across_channels"] is False
    assert found.values["eps"] == pytest.approx(1e-9)
