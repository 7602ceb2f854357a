"""Modules of PyTorch through MLflow: what is logged in one process predicts in another."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("mlflow", reason="mlflow is not installed: make test-mlflow")
pytest.importorskip("torch", reason="torch is not installed: make test-mlflow")

import mlflow
import torch
from torch import nn

import sparknet
import sparknet.mlflow
from sparknet.errors import SettingError
from sparknet.spark import ModuleModel
from sparknet.spark.pipeline import NetModel
from tests.torch import shop
from tests.torch.modules import LABELS, POINTS

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
sys.modules["pyspark"] = None
import mlflow.pyfunc
import numpy as np
import pandas as pd
from tests.torch.modules import POINTS
model = mlflow.pyfunc.load_model(sys.argv[1])
assert "tests.torch.shop" in sys.modules
found = model.predict(pd.DataFrame({"features": [row for row in POINTS]}))
np.save(sys.argv[2], np.stack(found["output"]))
"""


@pytest.fixture
def store(tmp_path):
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.create_experiment("modules", (tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("modules")
    yield
    sparknet.mlflow.autolog(disable=True)
    mlflow.set_tracking_uri(before)


def trained(module: Any) -> Any:
    return sparknet.train(
        module=module,
        loss=nn.CrossEntropyLoss(),
        optimizer=partial(torch.optim.SGD, lr=0.1),
        data={"features": POINTS, "label": LABELS},
        steps=20,
        workers=1,
    )


def test_a_logged_module_elsewhere(store, tmp_path):
    sparknet.mlflow.autolog()
    found = trained(partial(shop.scorer, hidden=5))
    (run,) = mlflow.search_runs(output_format="list")
    (logged,) = mlflow.search_logged_models(output_format="list")
    assert logged.source_run_id == run.info.run_id
    uri = f"models:/{logged.model_id}"
    told = mlflow.models.get_model_info(uri).signature
    assert (told.inputs.input_names(), told.outputs.input_names()) == (["features"], ["output"])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, logged.artifact_location, tmp_path / "made.npy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with torch.no_grad():
        wanted = found.module.eval()(torch.from_numpy(POINTS)).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "made.npy"), wanted, rtol=1e-5, atol=1e-6)
    rows = pd.DataFrame({"features": list(POINTS)})
    again = sparknet.mlflow.load_model(uri).predict(rows)
    np.testing.assert_allclose(np.stack(again["output"]), wanted, rtol=1e-5, atol=1e-6)


def test_a_stage_of_a_module(tmp_path):
    model = ModuleModel(shop.scorer, columns={"points": "features"}, records={"points": POINTS[:2]})
    sparknet.mlflow.save_model(NetModel(model, predictionCol="side"), tmp_path / "stage")
    program = PROGRAM.replace('found["output"]', 'found["side"]')
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "stage", tmp_path / "made.npy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with torch.no_grad():
        wanted = model.module.eval()(torch.from_numpy(POINTS)).numpy().argmax(1)
    np.testing.assert_array_equal(np.load(tmp_path / "made.npy"), wanted)


def test_a_module_whose_code_has_no_name(store, tmp_path):
    """Its state dict is logged, as before."""
    sparknet.mlflow.autolog()
    found = trained(lambda: shop.Scorer())
    (run,) = mlflow.search_runs(output_format="list")
    held = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="sparknet")
    state = torch.load(Path(held, "module.pt"), weights_only=True)
    torch.testing.assert_close(state, dict(found.module.state_dict()))
    with pytest.raises(
        SettingError, match=r"nothing names what makes module 'Scorer' as it is, an"
    ):
        sparknet.mlflow.save_model(found, tmp_path / "model")
