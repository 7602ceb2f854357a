"""What plans say beyond shapes: statistics, levels, boxes, and which bottoms a gradient reaches."""

import pytest

from sparknet.errors import LayerError
from sparknet.layers import TEST, make
from sparknet.proto import caffe_pb2
from tests.layers.nets import layer, plan, shapes_of_params


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


def test_only_stochastic_pooling_draws():
    made = {
        method: layer("Pooling", f"pooling_param {{ pool: {method} kernel_size: 2 }}")
        for method in ("MAX", "AVE", "STOCHASTIC")
    }
    assert [method for method, one in made.items() if one.draws] == ["STOCHASTIC"]


def test_levels_of_a_pyramid():
    found = plan("SPP", "spp_param { pyramid_height: 1 }", (2, 3, 9, 8))
    assert found.tops == ((2, 3, 1, 1),)
    assert found.values["levels"][0]["kernel"] == (9, 8)
    found = plan("SPP", "spp_param { pyramid_height: 3 pool: AVE }", (2, 3, 9, 8))
    # 1 x 1, 2 x 2, and 4 x 4 bins
    assert found.tops == ((2, 3 * 21),)
    assert [level["kernel"] for level in found.values["levels"]] == [(9, 8), (5, 4), (3, 2)]
    assert [level["pad"] for level in found.values["levels"]] == [(0, 0), (1, 0), (2, 0)]
    assert found.values["method"] == "ave"


FIVE = "recurrent_param { num_output: 5 expose_hidden: false }"


def test_gradients_of_recurrent_layers_reach_data_and_static_inputs():
    exposed = FIVE.replace("false", "true")
    made = layer("LSTM", exposed, bottoms=5, tops=3)
    assert [made.force_backward(i) for i in range(5)] == [True, False, True, False, False]
    made = layer("LSTM", exposed, bottoms=4, tops=3)
    assert [made.force_backward(i) for i in range(4)] == [True, False, False, False]


def test_streams_may_change_but_not_steps_of_caffes_own():
    lstm, gru = (layer(kind, FIVE, bottoms=2) for kind in ("LSTM", "GRU"))
    for one in (lstm, gru):
        for streams in (2, 7):
            assert one.plan([(4, streams, 3), (4, streams)]).tops == ((4, streams, 5),)
    assert gru.plan([(3, 2, 3), (3, 2)]).tops == ((3, 2, 5),)
    with pytest.raises(LayerError, match="time steps cannot change from 4 to 3"):
        lstm.plan([(3, 2, 3), (3, 2)])


def priors(text: str):
    return plan("PriorBox", f"prior_box_param {{ {text} }}", (2, 8, 3, 4), (2, 3, 30, 60))


def test_prior_boxes():
    found = priors("min_size: 30 max_size: 60 aspect_ratio: 2 aspect_ratio: 3 variance: 0.1")
    sizes = [30, 1800**0.5, *(30 * ratio**0.5 for ratio in (2, 1 / 2, 3, 1 / 3))]
    assert found.values["widths"] == pytest.approx(sizes)
    assert found.tops == ((1, 2, 3 * 4 * 6 * 4),)
    assert (found.values["img_h"], found.values["img_w"]) == (30, 60)
    assert (found.values["step_h"], found.values["step_w"]) == (10, 15)
    found = priors(
        "min_size: 1 min_size: 2 aspect_ratio: 2 aspect_ratio: 0.5 flip: false "
        "step: 8 img_h: 5 img_w: 6"
    )
    assert len(found.values["widths"]) == 6
    assert found.values["variances"] == (0.1,)
    assert (found.values["img_h"], found.values["step_w"]) == (5, 8)
    found = priors("min_size: 1 aspect_ratio: 2 aspect_ratio: 0.5")
    assert found.values["heights"] == pytest.approx((1, 0.5**0.5, 2**0.5))
    with pytest.raises(LayerError, match="at most 1000 aspect_ratio"):
        priors("min_size: 2" + " aspect_ratio: 2" * 1001)
