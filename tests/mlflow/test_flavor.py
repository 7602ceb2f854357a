"""Models through the real MLflow: written, registered, read, and served by its own server."""

import base64
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("mlflow", reason="mlflow is not installed: make test-mlflow")

import mlflow
from mlflow.models import ModelSignature
from mlflow.types import Schema, TensorSpec

import sparknet
import sparknet.mlflow
from sparknet import Net
from sparknet.errors import FileError, SettingError
from sparknet.report.mlflow_runs import MlflowWarning, _Tracked
from sparknet.spark import SparkModel
from sparknet.spark.pipeline import NetFeaturizer, NetModel

PICTURES = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [4, 3, 12, 12] } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { pool: AVE global_pooling: true } }
layer { name: "prob" type: "Softmax" bottom: "pool" top: "prob" }
"""
POINTS = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [8, 2] } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: [8] } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = f"net_param {{ {POINTS} }} base_lr: 0.1 lr_policy: 'fixed' random_seed: 1"
DATA = {
    "data": np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32),
    "label": np.arange(200) % 3,
}
ENOUGH = 120.0


def free_port() -> int:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def served(words: list[str], health: str, folder: Path) -> Iterator[None]:
    """A server of MLflow's, once it says that it is well."""
    log = folder / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *words],
            stdout=out,
            stderr=out,
            cwd=folder,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            start_new_session=True,
        )
    try:
        end = time.monotonic() + ENOUGH
        while True:
            try:
                with urllib.request.urlopen(health, timeout=5):
                    break
            except OSError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.1)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, 15)
        server.wait(30)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """The tables of MLflow, which take seconds to make."""
    folder = tmp_path_factory.mktemp("store")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.search_experiments()
    return folder


@pytest.fixture
def store(database, request):
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{database}/mlflow.db")
    name = request.node.name
    mlflow.create_experiment(name, (database / "artifacts").as_uri())
    mlflow.set_experiment(name)
    yield database
    sparknet.mlflow.autolog(disable=True)
    mlflow.set_tracking_uri(before)


def rows(count: int) -> pd.DataFrame:
    return pd.DataFrame({"features": list(np.random.default_rng(2).normal(size=(count, 2)))})


MODELS: dict[str, tuple[Any, Any]] = {
    "net": (lambda: Net(PICTURES, seed=1), lambda: picture_rows("data")),
    "model": (
        lambda: SparkModel(Net(PICTURES, seed=1), columns={"data": "content"}),
        lambda: picture_rows("content"),
    ),
    "stage": (
        lambda: NetModel(
            SparkModel(Net(POINTS, seed=1)), featuresCol="features", predictionCol="prediction"
        ),
        lambda: rows(5),
    ),
    "featurizer": (
        lambda: NetFeaturizer(Net(POINTS, seed=1), inputCol="features", output="ip"),
        lambda: rows(4),
    ),
}


def picture_rows(column: str) -> pd.DataFrame:
    image = pytest.importorskip("PIL.Image")
    from io import BytesIO

    made = []
    for seed in range(3):
        file = BytesIO()
        pixels = np.random.default_rng(seed).integers(0, 256, (12, 12, 3), np.uint8)
        image.fromarray(pixels).save(file, "PNG")
        made.append(file.getvalue())
    return pd.DataFrame({column: made})


def equal(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    assert list(found.columns) == list(wanted.columns)
    for name in wanted.columns:
        assert np.array_equal(np.stack(list(found[name])), np.stack(list(wanted[name]))), name


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_logged_is_what_is_loaded(kind, store):
    make, given = MODELS[kind][0], MODELS[kind][1]()
    info = sparknet.mlflow.log_model(make(), "net", registered_model_name=kind)
    ours = sparknet.mlflow.load_model(f"models:/{kind}/1")
    wanted = ours.predict(given)
    equal(mlflow.pyfunc.load_model(info.model_uri).predict(given), wanted)
    kinds = {one.name: str(one.type) for one in info.signature.inputs}
    assert list(kinds) == list(given.columns)
    assert kinds[given.columns[0]] == (
        "DataType.binary" if kind in ("net", "model") else "Array(double)"
    )
    assert [one.name for one in info.signature.outputs] == list(wanted.columns)
    folder = Path(mlflow.artifacts.download_artifacts(info.model_uri))
    needs = (folder / "requirements.txt").read_text().split()
    extras = "[images,parquet]" if kind in ("net", "model") else "[parquet]"
    assert f"sparknet{extras}=={sparknet.__version__}" in needs
    assert (folder / "input_example.json").exists()


def test_the_example_and_the_signature_of_others(tmp_path):
    example = rows(2)
    sparknet.mlflow.save_model(
        MODELS["stage"][0](), tmp_path / "a", input_example=example, metadata={"a": 1}
    )
    read = mlflow.models.Model.load(str(tmp_path / "a"))
    assert read.metadata == {"a": 1}
    assert len(json.loads((tmp_path / "a" / "input_example.json").read_text())["data"]) == 2
    sparknet.mlflow.save_model(
        Net(POINTS, seed=1), tmp_path / "b", signature=False, pip_requirements=["sparknet"]
    )
    assert mlflow.models.Model.load(str(tmp_path / "b")).signature is None
    assert (tmp_path / "b" / "requirements.txt").read_text().split()[1:] == ["sparknet"]
    takes = Schema([TensorSpec(np.dtype(np.float32), (-1, 3, 12, 12), "data")])
    sparknet.mlflow.save_model(
        Net(PICTURES, seed=1), tmp_path / "tensors", signature=ModelSignature(inputs=takes)
    )
    arrays = np.random.default_rng(0).random((2, 3, 12, 12), np.float32)
    found = mlflow.pyfunc.load_model(str(tmp_path / "tensors")).predict(arrays)
    assert np.array_equal(
        found["prob"], sparknet.load(Net(PICTURES, seed=1)).predict(arrays)["prob"]
    )
    stage = tmp_path / "a" / "data" / "sparknet" / "stage"
    sparknet.mlflow.save_model(stage, tmp_path / "c")
    equal(
        mlflow.pyfunc.load_model(str(tmp_path / "c")).predict(example),
        mlflow.pyfunc.load_model(str(tmp_path / "a")).predict(example),
    )


def test_the_example_is_as_large_as_the_crop(tmp_path):
    large = PICTURES.replace("12, 12", "96, 96")
    model = SparkModel(large, Net(large, seed=1).get_weights(), crop=96)
    sparknet.mlflow.save_model(model, tmp_path / "model")
    assert mlflow.models.Model.load(str(tmp_path / "model")).signature is not None


def test_what_is_refused(tmp_path):
    with pytest.raises(SettingError, match=r"takes a SparkModel, a stage, a Net, .* not dict"):
        sparknet.mlflow.save_model({}, tmp_path / "a")
    assert not (tmp_path / "a").exists()
    sparknet.mlflow.save_model(MODELS["stage"][0](), tmp_path / "a")
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="is a file: MLflow writes a model into a new folder"):
        sparknet.mlflow.save_model(Net(POINTS, seed=1), tmp_path / "file")
    with pytest.raises(FileError, match="is a folder with files already"):
        sparknet.mlflow.save_model(Net(POINTS, seed=1), tmp_path / "a")
    loaded = sparknet.mlflow.load_model(str(tmp_path / "a"))
    with pytest.raises(SettingError, match="was loaded from a stage: give MLflow the stage's fold"):
        sparknet.mlflow.save_model(loaded, tmp_path / "b")
    mlflow.pyfunc.save_model(
        str(tmp_path / "other"), python_model=lambda values: values, pip_requirements=[]
    )
    with pytest.raises(FileError, match=r"has the flavors .*python_function.* and not sparknet"):
        sparknet.mlflow.load_model(str(tmp_path / "other"))


def post(url: str, content: Any) -> Any:
    request = urllib.request.Request(
        url, json.dumps(content).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_mlflow_serves_it_without_spark(tmp_path):
    sparknet.mlflow.save_model(MODELS["model"][0](), tmp_path / "model")
    given = picture_rows("content")
    wanted = sparknet.mlflow.load_model(str(tmp_path / "model")).predict(given)
    port = free_port()
    words = ["models", "serve", "-m", str(tmp_path / "model"), "--env-manager", "local"]
    words += ["-p", str(port), "-h", "127.0.0.1"]
    url = f"http://127.0.0.1:{port}"
    with served(words, f"{url}/health", tmp_path):
        texts = [base64.b64encode(one).decode() for one in given["content"]]
        records = {"dataframe_records": [{"content": text} for text in texts]}
        made = post(f"{url}/invocations", records)["predictions"]
        found = np.array([one["prob"] for one in made])
        np.testing.assert_allclose(found, np.stack(list(wanted["prob"])), rtol=1e-6)
        with pytest.raises(urllib.error.HTTPError) as told:
            post(f"{url}/invocations", {"dataframe_records": [{"content": "aGVsbG8="}]})
        assert "is no image that can be read" in told.value.read().decode()


def test_a_function_of_spark_predicts_what_a_spark_model_predicts(tmp_path):
    from sparknet.spark import local_session

    net = Net(POINTS, seed=1)
    sparknet.mlflow.save_model(net, tmp_path / "model")
    points = np.random.default_rng(0).normal(size=(20, 2))
    spark = local_session(2)
    try:
        rows = [(number, one.tolist()) for number, one in enumerate(points)]
        data = spark.createDataFrame(rows, "number long, data array<double>")
        udf = mlflow.pyfunc.spark_udf(
            spark,
            str(tmp_path / "model"),
            env_manager="local",
            result_type="struct<ip: array<float>>",
        )
        ours = SparkModel(net).transform(data).orderBy("number").collect()
        theirs = data.select("number", udf("data")["ip"].alias("ip")).orderBy("number").collect()
    finally:
        spark.stop()
    np.testing.assert_allclose([row.ip for row in theirs], [row.ip for row in ours], rtol=1e-6)


def test_requests_that_wait_share_a_batch_unless_records_affect_each_other():
    from sparknet.report.mlflow_models import _shared_rows

    assert _shared_rows(sparknet.load(Net(POINTS, seed=1))) > 8
    statistics = "batch_norm_param { use_global_stats: false }"
    layer = f'layer {{ name: "bn" type: "BatchNorm" bottom: "data" top: "bn" {statistics} }}'
    mixing = POINTS.replace('bottom: "data" top: "ip"', 'bottom: "bn" top: "ip"')
    mixing = mixing.replace('layer { name: "ip"', f'{layer}\nlayer {{ name: "ip"')
    assert _shared_rows(sparknet.load(Net(mixing, seed=1))) == 1


def test_autolog_through_a_tracking_server(tmp_path):
    port = free_port()
    words = ["server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    words += ["--backend-store-uri", f"sqlite:///{tmp_path}/s.db", "--serve-artifacts"]
    words += ["--artifacts-destination", str(tmp_path / "kept")]
    url, before = f"http://127.0.0.1:{port}", mlflow.get_tracking_uri()
    with served(words, f"{url}/health", tmp_path):
        mlflow.set_tracking_uri(url)
        try:
            mlflow.set_experiment("trainings")
            sparknet.mlflow.autolog()
            heard: list[Any] = []
            trained = sparknet.train(
                SOLVER, DATA, validation=DATA, steps=40, validate_every=2, on_event=heard.append
            )
            sparknet.mlflow.autolog(disable=True)
            sparknet.train(SOLVER, DATA, steps=3)
            (run,) = mlflow.search_runs(output_format="list")
            client = mlflow.MlflowClient()
            told = client.get_metric_history(run.info.run_id, "training_loss")
            rounds = [event for event in heard if event["event"] == "round"]
            assert [(one.step, one.value) for one in sorted(told, key=lambda m: m.step)] == [
                (event["iteration"], pytest.approx(event["loss"])) for event in rounds
            ]
            assert run.info.status == "FINISHED"
            assert run.data.params["strategy"] == "averaging"
            assert run.data.params["strategy.steps"] == "10"
            assert run.data.metrics["loss"] == pytest.approx(trained.outcome.metrics["loss"])
            kept = {one.path for one in client.list_artifacts(run.info.run_id, "sparknet")}
            assert kept == {"sparknet/events.jsonl", "sparknet/report.html"}
            (logged,) = mlflow.search_logged_models(output_format="list")
            model = sparknet.mlflow.load_model(f"models:/{logged.model_id}")
            found = model.predict(DATA["data"])["ip"]
            wanted = trained.net.forward({"data": DATA["data"]}, outputs=["ip"])["ip"]
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        finally:
            sparknet.mlflow.autolog(disable=True)
            mlflow.set_tracking_uri(before)


def test_autolog_in_a_run_of_ones_own_and_a_training_that_fails(store):
    sparknet.mlflow.autolog(log_models=False)
    with mlflow.start_run() as mine:
        sparknet.train(SOLVER, DATA, steps=20)
        assert mlflow.active_run().info.run_id == mine.info.run_id
    bad = {**DATA, "data": DATA["data"] * np.float32(1e30)}
    with pytest.raises(sparknet.SparkNetError):
        sparknet.train(SOLVER, bad, steps=200)
    assert mlflow.active_run() is None
    found = {run.info.run_id: run for run in mlflow.search_runs(output_format="list")}
    assert found[mine.info.run_id].data.metrics["training_loss"] > 0
    (other,) = (run for key, run in found.items() if key != mine.info.run_id)
    assert other.info.status == "FAILED"


def test_a_training_that_goes_on_from_a_snapshot_and_a_measurement(store):
    sparknet.mlflow.autolog(log_models=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MlflowWarning)
        sparknet.find_lr(SOLVER, DATA, steps=10)
        assert not mlflow.search_runs(output_format="list")
        run = _Tracked()
        start = {"event": "start", "strategy": "averaging", "settings": {}, "iteration": 0}
        for snapshot in (None, "a", "b"):  # as after two losses
            run.hear({**start, "resumed": snapshot})
            run.hear({"event": "round", "iteration": 3, "loss": 0.5})
        run.failed()
    (found,) = mlflow.search_runs(output_format="list")
    assert (found.info.status, found.data.metrics["training_loss"]) == ("FAILED", 0.5)


def test_a_server_that_is_not_there(store, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    sparknet.mlflow.autolog()
    mlflow.set_tracking_uri(f"http://127.0.0.1:{free_port()}")
    with pytest.warns(
        MlflowWarning, match="MLflow refused what was logged, and the training goes on"
    ):
        trained = sparknet.train(SOLVER, DATA, steps=20)
    assert trained.outcome.iteration == 20


class Module:
    """As one of PyTorch has it."""

    def state_dict(self) -> dict[str, Any]:
        return {}


def test_a_module_of_pytorch_says_not_what_it_is_given(tmp_path):
    with pytest.raises(SettingError, match=r"log what a training returned, or SparkModel\(module"):
        sparknet.mlflow.save_model(Module(), tmp_path / "model")
