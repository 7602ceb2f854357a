"""Numbers that are no pixels, given to preprocessing for pixels: a warning, once."""

import warnings

import numpy as np
import pytest

from sparknet import Net, train
from sparknet.errors import DataError
from sparknet.net.input_warnings import RangeWarning
from tests.net.test_images import MEAN, deploy

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 3, 24, 24)).astype(np.float32)
SCALED = {"scale": 1 / 255}
TORCH = {"mean": MEAN, "std": (58.0, 57.0, 57.5)}


@pytest.mark.parametrize(
    ("how", "values", "says"),
    [
        (SCALED, PIXELS / 255, r"values from 0 to 1, .*\(scale 0.003922\) .*multiply it by 255"),
        ({"mean": MEAN}, PIXELS / 256, r"\(mean 104, 117, 123\) is for pixels from 0 to 255: mul"),
        ({"mean": np.full((3, 24, 24), 9.0)}, PIXELS / 256, r"\(mean a picture\) is for pixels"),
        (TORCH, PIXELS / 64 - 2, r"from -2 to 1.98.*std 58, 57, 57.5.*another preprocessing"),
        (SCALED, PIXELS * 257, r"from 0 to 6.554e\+04.* divide it by 257, or give another scale"),
    ],
)
def test_a_column_is_named_once(how, values, says):
    net = Net(deploy(), **how)
    with pytest.warns(RangeWarning, match=says) as told:
        net.forward({"data": values})
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.forward({"data": values})


@pytest.mark.parametrize(
    ("how", "values"),
    [
        (SCALED, PIXELS),
        (SCALED, np.zeros_like(PIXELS)),
        (SCALED, (PIXELS > 99).astype(np.uint8)),
        (TORCH, PIXELS),
        ({"mean": MEAN}, PIXELS - 100),
        ({"scale": 1 / 65535}, PIXELS * 257),
        ({"mean": 0.5, "std": 0.25}, PIXELS / 255),
        ({"mean": -30.0, "scale": 0.02}, PIXELS / 255 - 1),
        ({}, PIXELS / 255),
    ],
)
def test_what_may_well_be_meant(how, values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Net(deploy(), **how).forward({"data": values})


def test_before_training():
    """The one who starts the training is told, not every worker."""
    text = f"""base_lr: 0.01 lr_policy: "fixed" net_param {{ {deploy()}
        layer {{ name: "label" type: "Input" top: "label" input_param {{ shape {{ dim: 1 }} }} }}
        layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
        }}"""
    given = {"data": np.repeat(PIXELS, 4, 0) / 255, "label": np.arange(8) % 5}
    with pytest.warns(RangeWarning, match="from 0 to 1, and its preprocessing") as told:
        train(text, given, steps=1, **SCALED)
    assert sum(one.category is RangeWarning for one in told) == 1


def test_an_outlier_in_a_late_record():
    text = """base_lr: 0.01 lr_policy: "fixed" net_param {
        layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [4, 2] } } }
        layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param {
          num_output: 1 weight_filler { type: "xavier" } } }
        layer { name: "sum" type: "Reduction" bottom: "ip" top: "sum" loss_weight: 1 } }"""
    values = np.random.default_rng(0).normal(size=(1500, 2)).astype(np.float32)
    values[1400, 1] = -1e30
    with pytest.warns(
        RangeWarning, match=r"'data' of the training data holds 1e\+30 in record 1400"
    ):
        train(text, {"data": values}, steps=1)
    with pytest.raises(DataError, match=r"holds 1e\+300 in record 0: fill or leave out"):
        train(text, {"data": np.full((8, 2), 1e300)}, steps=1)
