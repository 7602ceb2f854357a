"""What becomes of a row depends on that row alone: rows in any batches, good and bad.

Below Spark, on the functions that its tasks call, so that no JVM is needed.
"""

from dataclasses import replace
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparknet.errors import SparkError, SparkNetError
from sparknet.net import Net
from sparknet.net.caffe_model import CaffeModel
from sparknet.net.record_checks import ClassNumbers, class_numbers
from sparknet.predict.input_columns import InputSpec, input_specs
from sparknet.predict.request import Request
from sparknet.spark import SparkModel
from sparknet.spark.predict.task import SentModel, WorkerModel, predicted, structs
from sparknet.spark.train.ingest import HELD, NAMED, ROW, open_records, write

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
PIL = pytest.importorskip("PIL.Image")

SIDE = 8
NET = f"""
layer {{ name: "data" type: "Input" top: "data"
  input_param {{ shape {{ dim: [4, 3, {SIDE}, {SIDE}] }} }} }}
layer {{ name: "label" type: "Input" top: "label" input_param {{ shape {{ dim: [4] }} }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""
HOWS = {
    "plain": {},
    "resize": {"resize": 9},
    "resize and crop": {"resize": (12, 11), "crop": SIDE},
    "crop": {"crop": SIDE},
}


def encoded(height: int, width: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    pixels = np.random.default_rng(height * 100 + width).integers(0, 256, (height, width, 3))
    data = BytesIO()
    PIL.fromarray(pixels.astype(np.uint8)).convert(mode).save(data, kind)
    return data.getvalue()


def raw(height: int, width: int) -> bytes:
    rng = np.random.default_rng(height * 10 + width)
    return bytes(rng.integers(0, 256, 3 * height * width, np.uint8))


GOOD = {
    "png": encoded(20, 30),
    "jpeg": encoded(9, 9, "JPEG"),
    "grey bmp": encoded(16, 10, "BMP", "L"),
    "gif": encoded(8, 8, "GIF"),
    # As long as a raw picture of the net's shape.
    "long gif": encoded(9, 10, "GIF").ljust(4 * 3 * SIDE * SIDE, b"\0"),
    "raw": raw(SIDE, SIDE),
}
BAD: dict[str, bytes | None] = {
    "2 x 2": b"hello, world",
    "3 x 3": b"a text of 27 letters in all",
    "7 x 7": b"<html>".ljust(3 * 7 * 7),
    "cut to 10 x 10": encoded(20, 30)[:300],
    "magic": b"\xff\xd8\xff",
    "magic of 5 x 5": b"BM".ljust(3 * 5 * 5, b"\1"),
    "nothing": b"",
    "null": None,
}
VALUES = {**GOOD, **BAD}
ROWS = st.sampled_from(sorted(VALUES))


@cache
def net(how: str) -> Net:
    return Net(NET, seed=1, **HOWS[how])


class _Local(SentModel):
    """A net whose weights no Spark sends."""

    def open(self):
        portable = self.model
        made = Net(NET, seed=1, preprocessing=portable.preprocessing)
        return WorkerModel(CaffeModel(made))


def task_of(how, batch, invalid):
    why = "why" if invalid == "null" else None
    ask = Request(outputs=["ip"], batch=batch, invalid=invalid, reason=why)
    with patch("sparknet.spark.predict.model.send_weights", lambda *_: f"{how}.weights"):
        found = SparkModel(net(how)).prediction(None, ask)
    sent = found.model
    local = _Local(**{name: getattr(sent, name) for name in sent.__dataclass_fields__})
    return replace(found, model=local)


def results(rows, how, batch, invalid):
    given_ = task_of(how, batch, invalid)
    table = pa.RecordBatch.from_pydict(
        {"data": pa.array([VALUES[row] for row in rows], pa.binary())}
    )
    made = []
    for piece in predicted([table], given_):
        values = piece.columns[0].to_pylist()
        reasons = piece.columns[1].to_pylist() if invalid == "null" else [None] * len(values)
        made += list(zip(values, reasons, piece.valid, strict=True))
    return made


@cache
def alone(row, how):
    ((value, why, _),) = results([row], how, 1, "null")
    return value, why


@pytest.mark.parametrize("how", HOWS)
@given(rows=st.lists(ROWS, max_size=9), batch=st.integers(1, 5))
@example(rows=["2 x 2", *GOOD], batch=4)
@example(rows=[*GOOD, "null"], batch=5)
@settings(max_examples=40, deadline=None)
def test_a_prediction_depends_on_its_row_alone(how, rows, batch):
    found = results(rows, how, batch, "null")
    assert len(found) == len(rows)
    for row, (value, why, valid) in zip(rows, found, strict=True):
        wanted_, reason = alone(row, how)
        assert why == reason
        assert valid == (reason is None) == (value is not None)
        if value is not None:
            np.testing.assert_allclose(value, wanted_, rtol=1e-4, atol=1e-3)
    dropped = results(rows, how, batch, "drop")
    assert [valid for *_, valid in dropped] == [valid for *_, valid in found]


@pytest.mark.parametrize("how", HOWS)
def test_which_rows_are_good(how):
    for row, data in GOOD.items():
        direct = np.frombuffer(data, np.uint8).reshape(3, SIDE, SIDE) if row == "raw" else data
        value, why = alone(row, how)
        assert why is None, (row, why)
        expected = net(how).forward({"data": [direct]}, ["ip"])["ip"][0]
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-3)
    for row in BAD:
        value, why = alone(row, how)
        assert value is None, row
        assert str(why).startswith("column 'data'")


def test_a_function_of_another_number_of_columns(monkeypatch):
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # which the task sets
    column = pa.array([VALUES["png"]], pa.binary())
    message = r"a column for each of the net's inputs \['data'\]: 2 are given"
    with pytest.raises(SparkError, match=message):
        list(structs([(column, column)], task_of("plain", 1, "raise"), ()))


# -- training --------------------------------------------------------------------------------

CLASSES = {"label": ClassNumbers(3)}
LABELS = st.sampled_from((0, 1, 2, 2, 1, 0, 3, -1, None))
MAPPING = {"data": "photo", "label": "kind"}


def shapes(how: str) -> dict[str, InputSpec]:
    return input_specs(net(how).inputs.values(), True, None, CLASSES)


def batches(rows, size):
    photos = [VALUES[photo] for photo, _ in rows]
    kinds = [kind for _, kind in rows]
    whole = pa.RecordBatch.from_pydict(
        {
            "photo": pa.array(photos, pa.binary()),
            "kind": pa.array(kinds, pa.int64()),
            ROW: pa.array(range(len(rows)), pa.int64()),
            HELD: pa.array([number % 5 == 4 for number in range(len(rows))], pa.bool_()),
            NAMED: pa.array([f"file:/{number}.png" for number in range(len(rows))], pa.string()),
        }
    )
    for begin in range(0, len(rows), size):
        yield whole.slice(begin, size)


def ingested(rows, how, size, drops):
    with TemporaryDirectory() as folder:
        path = Path(folder, "a")
        write(batches(rows, size), path, MAPPING, shapes(how), drops)
        return open_records(path, shapes(how))


@cache
def learned(row, kind, how):
    """What is trained on of a row alone; None of a bad one."""
    part = ingested([(row, kind)], how, 1, True)
    return np.array(part.training.take([0])["data"][0]) if len(part.training) else None


@pytest.mark.parametrize("how", ["plain", "resize", "resize and crop"])
@given(rows=st.lists(st.tuples(ROWS, LABELS), max_size=9), size=st.integers(1, 5))
@example(rows=[("2 x 2", 0), *((one, 1) for one in GOOD)], size=9)
@settings(max_examples=40, deadline=None)
def test_training_takes_a_row_or_not_by_that_row_alone(how, rows, size):
    part = ingested(rows, how, size, True)
    wanted_ = [(number, learned(*row, how)) for number, row in enumerate(rows)]
    good = [(number, data) for number, data in wanted_ if data is not None]
    assert part.dropped == len(rows) - len(good)
    for records, is_held in ((part.training, False), (part.validation, True)):
        expected = [(number, data) for number, data in good if (number % 5 == 4) == is_held]
        found = records.take(slice(0, len(records)))
        assert found["label"].tolist() == [rows[number][1] for number, _ in expected]
        for made, (_, data) in zip(found["data"], expected, strict=True):
            np.testing.assert_array_equal(made, data)
    bad = [number for number, data in wanted_ if data is None]
    if bad:
        assert f"(file:/{bad[0]}.png of the " in part.reason
        with pytest.raises(SparkNetError) as error:
            ingested(rows, how, size, False)
        assert str(error.value) == part.reason
    else:
        assert part.reason is None


def test_image_files_that_keep_their_sizes_need_one_size():
    assert ingested([("raw", 0), ("2 x 2", 0)], "crop", 2, True).dropped == 1
    message = (
        r"column 'photo' has records of 3 x 8 x 8 and of 3 x 20 x 30: give resize \(file:/1.png"
    )
    for size in (1, 2):
        with pytest.raises(SparkError, match=message):
            ingested([("raw", 0), ("png", 1)], "crop", size, True)


def test_a_label_that_is_no_class_is_told_with_its_row():
    assert class_numbers(net("plain")) == CLASSES
    with pytest.raises(
        SparkNetError,
        match=r"column 'kind' holds 7, which is no class: there are 3, numbered from 0 to 2 "
        r"\(file:/1.png of the training data\)",
    ):
        ingested([("png", 1), ("gif", 7)], "plain", 2, False)
