"""What every `Model` knows of itself, without a `Predictor`: its inputs, and how it is saved."""

import numpy as np
import pytest

import sparknet
from sparknet import LinearLayer, Net, NetParams, RDDLayer
from sparknet.net.caffe_model import CaffeModel
from sparknet.net.model_inputs import ModelInputs

SCORES = NetParams("n", RDDLayer("data", [8, 2]), LinearLayer("ip", "data", num_outputs=3))


@pytest.mark.parametrize("name", ["folder", "file.caffemodel"])
def test_a_net_says_its_inputs_and_saves_itself(tmp_path, name):
    net = Net(SCORES, seed=1)
    model = CaffeModel(net)
    assert {name: one.record for name, one in model.inputs.items()} == {"data": (2,)}
    model.save(tmp_path / name, ModelInputs({"data": "points"}, labels=("a", "b", "c")))
    loaded = sparknet.load(tmp_path / name)
    assert loaded.model.columns == {"data": "points"}
    assert loaded.model.labels == ("a", "b", "c")
    points = np.arange(4, dtype=np.float32).reshape(2, 2)
    want = net.forward({"data": points})["ip"]
    assert loaded.predict({"points": points})["ip"].tolist() == want.tolist()
