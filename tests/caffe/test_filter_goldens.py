"""The nets that each state selects: layers, blobs, bottoms and tops, through ``caffe.Net``."""

import sparknet.caffe as caffe
from tests.goldens import GOLDENS, cases


@cases("formats/filter")
def test_states(case):
    file = str(GOLDENS / "formats" / "filter" / f"{case['name']}.prototxt")
    assert case["states"]
    for state in case["states"]:
        phase = getattr(caffe, state["phase"])
        net = caffe.Net(file, phase, level=state["level"], stages=state["stages"])
        assert list(net._layer_names) == state["layers"]
        assert list(net.blobs) == state["blobs"]
        assert list(net.inputs) == state["inputs"]
        assert list(net.outputs) == state["outputs"]
        assert dict(net.bottom_names) == state["bottoms"]
        assert dict(net.top_names) == state["tops"]
