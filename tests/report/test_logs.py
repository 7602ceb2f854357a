"""JsonLines, History and TensorBoard: what was written is read back."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError, MissingExtra
from sparknet.report import History, JsonLines, TensorBoard, together
from sparknet.training.history import MOST
from tests.report.events import START, TRAINING, layers, round_event, validation


def test_json_lines_and_back(tmp_path):
    path = tmp_path / "train.jsonl"
    for part in (TRAINING[:4], TRAINING[4:]):  # as if it had been resumed
        log = JsonLines(path, clock=lambda: 12.3456)
        for event in part:
            log(event)
        log.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [{**event, "time": 12.346} for event in TRAINING]
    assert History.read(path).events == lines
    out = io.StringIO()
    JsonLines(out)({"event": "stop", "time": 5.5})
    assert json.loads(out.getvalue())["time"] == 5.5


def test_what_json_cannot_hold():
    out = io.StringIO()
    JsonLines(out)(
        round_event(1, loss=float("nan"), samples=np.int64(3), more=(np.float32(0.5), Path("x")))
    )
    read = json.loads(out.getvalue())
    assert (read["loss"], read["samples"], read["more"]) == (None, 3, [0.5, "x"])


def test_history():
    history = History()
    for event in TRAINING:
        together(history, None)(event)
    assert history.loss == ([10, 20, 30, 40], [2.0, 1.0, pytest.approx(2 / 3), 0.5])
    assert history.samples_per_second == ([10, 20, 30, 40], [640.0] * 4)
    assert history.metrics == {
        "accuracy": ([10, 30], [0.5, 0.9]),
        "loss": ([10, 30], [1.5, 0.7]),
    }


def test_a_history_is_the_sequence_of_its_events():
    history = History(TRAINING)
    assert list(history) == history.events == list(TRAINING)
    assert (history[-1], history[1:3], len(history)) == (
        TRAINING[-1],
        list(TRAINING[1:3]),
        len(TRAINING),
    )
    told = "<History: 4 rounds, 2 validations, training loss 0.5, accuracy 0.9, loss 0.7>"
    assert repr(history) == told


def test_many_rounds_stay_a_few_thousand_and_keep_their_shape():
    history, rounds, validations = History([START]), 120_000, 1000
    for number in range(1, rounds + 1):
        history(round_event(number, loss=number * 1e-6))
        if number % validations == 0:
            history(validation(number, accuracy=number * 1e-6))
    at, values = history.loss
    assert 1.5 * MOST < len(at) <= 2 * MOST
    assert at[0] == 10
    assert at[-MOST:] == list(range(10 * (rounds - MOST + 1), 10 * rounds + 1, 10))
    assert len(set(np.diff(at[:-MOST]))) == 1
    assert max(np.diff(at)) == 10 * 128
    np.testing.assert_allclose(values, np.array(at) * 1e-7)
    assert len(history.metrics["accuracy"][0]) == rounds // validations
    assert history.events[:2] == [START, round_event(1, loss=1e-6)]
    order = [event["iteration"] for event in history.events]
    assert order == sorted(order)
    assert len(history.events) == 1 + len(at) + rounds // validations


def test_a_log_that_is_read_back_is_whole(tmp_path):
    path, rounds = tmp_path / "log", 3 * MOST
    path.write_text("".join(json.dumps(round_event(one)) + "\n" for one in range(1, rounds + 1)))
    assert len(History.read(path).loss[0]) == rounds


def test_a_metric_that_comes_later():
    history = History([validation(1, accuracy=0.5), validation(2, accuracy=0.6, top5=0.9)])
    assert history.metrics["top5"] == ([20], [0.9])


def test_a_line_that_was_cut_short(tmp_path):
    path = tmp_path / "log"
    path.write_text(json.dumps(round_event(1)) + '\n{"event": "rou')
    assert [event["round"] for event in History.read(path).events] == [1]


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"loss": 3}', "\0\0"])
def test_a_foreign_log(line, tmp_path):
    path = tmp_path / "log"
    path.write_text(f"{json.dumps(round_event(1))}\n{line}\n")
    with pytest.raises(FileError, match="line 2 is no event"):
        History.read(path)


def test_missing_places(tmp_path):
    with pytest.raises(FileError, match="cannot be read"):
        History.read(tmp_path / "none")
    with pytest.raises(FileError, match="cannot be written"):
        JsonLines(tmp_path / "none" / "log")


def test_tensorboard(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    board = TensorBoard(tmp_path / "logs")
    for event in TRAINING:
        board(event)
    board.close()
    written = accumulator.EventAccumulator(str(tmp_path / "logs"))
    written.Reload()
    found = {
        tag: [(one.step, one.tensor_proto.float_val[0]) for one in written.Tensors(tag)]
        for tag in written.Tags()["tensors"]
    }
    assert found["train/loss"] == [(10, 2.0), (20, 1.0), (30, pytest.approx(2 / 3)), (40, 0.5)]
    assert found["train/share_communicating"] == [(step, 0.25) for step in (10, 20, 30, 40)]
    assert found["validation/accuracy"] == [(10, 0.5), (30, pytest.approx(0.9))]
    assert found["train/samples_per_second"][0] == (10, 640)


def test_tensorboard_has_norms_and_histograms(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    board = TensorBoard(tmp_path / "logs")
    for event in (layers(1), layers(2, norm=None)):
        board(event)
    board.close()
    written = accumulator.EventAccumulator(str(tmp_path / "logs"))
    written.Reload()
    assert written.SummaryMetadata("weights/ip").plugin_data.plugin_name == "histograms"
    from tensorboard.util.tensor_util import make_ndarray

    for tag in ("weights/ip", "gradients/ip[1]"):
        found = [(one.step, make_ndarray(one.tensor_proto)) for one in written.Tensors(tag)]
        assert [step for step, _ in found] == [10, 20]
        assert found[0][1][:, 2].sum() == 4
        assert found[0][1][[0, -1], [0, 1]].tolist() == [-1, 1]
    norms = written.Tensors("norm of gradients/ip")
    assert [(one.step, make_ndarray(one.tensor_proto)) for one in norms] == [(10, 2.0)]


def test_history_has_fewer_looks_at_layers_than_rounds():
    history = History()
    for number in range(1, 2000):
        history(layers(number))
        history(round_event(number))
    kept = history.of_kind("layers")
    assert len(kept) <= 2 * MOST / 16
    assert len(history.loss[0]) > MOST
    first = history.layers[0]
    assert (first["iteration"], first["parameter"], first["weights_norm"]) == (10, "ip", 2.0)
    assert len(history.layers) == 2 * len(kept)


def test_tensorboard_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto", None)
    with pytest.raises(MissingExtra, match=r"sparknet\[tensorboard\]"):
        TensorBoard(tmp_path / "logs")
    assert not (tmp_path / "logs").exists()


def worker(computing: float) -> dict[str, float]:
    return {"steps": 5, "seconds_computing": computing, "seconds_waiting": 0.5}


WITH_WORKERS = [
    round_event(number, rate=0.1 / number, workers=[worker(1.0 * number), worker(2.0 * number)])
    for number in (1, 2)
]


def test_history_knows_rates_and_workers():
    history = History(WITH_WORKERS)
    assert history.rate == ([10, 20], [0.1, 0.05])
    assert [(one["round"], one["worker"], one["seconds_computing"]) for one in history.workers] == [
        (1, 0, 1.0),
        (1, 1, 2.0),
        (2, 0, 2.0),
        (2, 1, 4.0),
    ]


def test_history_becomes_data_frames():
    pytest.importorskip("pandas")
    history = History([*WITH_WORKERS, validation(2, accuracy=0.75)])
    rounds = history.to_pandas()
    assert list(rounds["loss"]) == [2.0, 1.0]
    assert "workers" not in rounds.columns
    assert list(history.to_pandas("validation")["accuracy"]) == [0.75]
    looks = History([layers(1)]).to_pandas("layers")
    assert looks["parameter"].tolist() == ["ip", "ip[1]"]
    assert looks["gradients_norm"].tolist() == [2.0, 2.0]
    workers = history.to_pandas("worker")
    assert workers.groupby("worker")["seconds_computing"].sum().to_dict() == {0: 3.0, 1: 6.0}


def test_pandas_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"sparknet\[spark\]"):
        History(WITH_WORKERS).to_pandas()


def test_tensorboard_has_rates_and_workers(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    board = TensorBoard(tmp_path / "logs")
    together(board)(WITH_WORKERS[1])
    board.close()
    read = accumulator.EventAccumulator(str(tmp_path / "logs"))
    read.Reload()
    tags = {tag: read.Tensors(tag)[0] for tag in read.Tags()["tensors"]}
    assert {"train/learning_rate", "worker 1/seconds_computing", "worker 0/seconds_waiting"} <= set(
        tags
    )


def test_notebooks_show_a_history():
    assert "<polyline" in History(TRAINING)._repr_html_()
    assert History()._repr_html_() == "no round was recorded"
