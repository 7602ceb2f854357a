"""Executors multiply the numbers that the driver's net multiplies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sparknet import Net
from sparknet.proto import parse_net
from sparknet.spark import SparkModel
from tests.caffe.test_int8 import needs_int8
from tests.net.test_quantize import NET, images


@needs_int8
def test_a_quantised_net_predicts_in_eight_bits(spark: Any, tmp_path: Path) -> None:
    data, path = images(8), tmp_path / "small.caffemodel"
    net = Net(parse_net(NET), seed=1)
    wide = net.forward({"data": data})["scores"]
    net.quantize({"data": data})
    want = net.forward({"data": data})["scores"]
    net.save(path)
    table = spark.createDataFrame([(one.ravel().tolist(),) for one in data], ["data"])
    for model in (SparkModel(net), SparkModel(parse_net(NET), path, precision="int8")):
        found = [row.scores for row in model.transform(table).select("scores").collect()]
        np.testing.assert_allclose(found, want, atol=1e-3 * np.abs(want).max())
        assert np.abs(np.array(found) - wide).max() > 1e-3
