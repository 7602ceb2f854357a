"""A steady batch of photographs enters few files, from the task's function to the kernel."""

import io
import sys
import threading
from collections import Counter

import numpy as np
import pyarrow as pa
from PIL import Image

from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.predict.net_predictor import NetPredictor
from sparknet.predict.request import Request
from sparknet.proto import parse_net
from sparknet.spark.predict.task import ModelTask, SentModel, WorkerModel, structs

NET = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 2 dim: 3 dim: 16 dim: 16 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""
FILES = 20
"""In order: the task and its stopwatch, columns and images, the net and its memory, the result."""


def photograph(number: int) -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (30, 20, 3), np.uint8)
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def test_a_batch_of_photographs_enters_few_files():
    how = Preprocessing(resize=(16, 16), mean=(104, 117, 123))
    model = NetPredictor(Net(parse_net(NET), seed=1, preprocessing=how))

    class Local(SentModel):
        def open(self):
            return WorkerModel(model.portable().open(model.model.weights, None))

    task = ModelTask(model.plan(Request(batch=4)), Local(model.portable(), "a.weights"))
    batch = (pa.array([photograph(number) for number in range(16)], pa.binary()),)
    entered = [Counter[str]()]

    def count(frame, event, _):
        _, ours, name = frame.f_code.co_filename.rpartition("/sparknet/")
        if ours and event == "call":
            entered[-1][name] += 1

    def batches():
        for _ in range(6):
            yield batch

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        for _ in structs(batches(), task, ("prob",)):
            entered.append(Counter())
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    steady = set().union(*entered[2:5])
    assert {"predict/prediction.py", "predict/input_columns.py", "native/net.py"} <= steady
    assert len(steady) <= FILES, sorted(steady)
