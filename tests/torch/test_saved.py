"""Modules that are saved in one process and loaded in another, without Spark and in pipelines."""

import json
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("pyspark")

import torch
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from torch import nn

import sparknet
from sparknet.errors import FileError, SettingError, SparkError, SparkNetError
from sparknet.net.model_inputs import ModelInputs
from sparknet.spark import ModuleModel, SparkModel, Trainer, local_session
from sparknet.spark.pipeline import NetEstimator, NetModel
from sparknet.torch.modules.saved_module import code_of
from sparknet.torch.modules.torch_model import TorchModel
from sparknet.weights import read_tensors
from tests.spark.java import start_quickly
from tests.torch import shop
from tests.torch.modules import LABELS, POINTS, Perceptron, perceptron

start_quickly()
ROOT = Path(__file__).resolve().parents[2]
HOW = {
    "loss": nn.CrossEntropyLoss(),
    "optimizer": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "steps": 40,
    "workers": 2,
}
ONE = {"points": POINTS[:2]}


def computed(module):
    with torch.no_grad():
        return module.eval()(torch.from_numpy(POINTS)).numpy()


def elsewhere(program, *arguments, without="pyspark"):
    """What a program prints in another process, which cannot import something."""
    head = f"import sys; sys.modules[{without!r}] = None\n" if without else "import sys\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


PREDICT = """
import numpy as np
import tests.torch.shop
from tests.torch.modules import POINTS
import sparknet
loaded = sparknet.load(sys.argv[1])
np.save(sys.argv[2], loaded.predict({"features": POINTS})["output"])
"""


def test_a_model_saves_itself(tmp_path):
    model = TorchModel(shop.Scorer())
    with pytest.raises(SettingError, match="no first rows"):
        model.save(tmp_path / "folder")
    model.records, model.made_by = ONE, code_of(model.module)
    assert {name: one.record for name, one in model.inputs.items()} == {"points": (4,)}
    model.save(tmp_path / "folder", ModelInputs({"points": "features"}))
    loaded = sparknet.load(tmp_path / "folder", trusted=True)
    assert loaded.model.columns == {"points": "features"}
    scores = loaded.predict({"features": POINTS})["output"]
    assert np.array_equal(np.asarray(scores), computed(model.module))


@pytest.mark.parametrize("module", [shop.Scorer(), partial(shop.scorer, hidden=7)], ids=["c", "f"])
def test_a_trained_module_elsewhere(tmp_path, module):
    data = {"features": POINTS, "label": LABELS}
    trained = sparknet.train(module=module, data=data, **HOW)
    trained.save(tmp_path / "scorer.safetensors")
    state = trained.module.state_dict()
    held = read_tensors(tmp_path / "scorer.safetensors")
    assert held.keys() == state.keys()
    for name, values in state.items():
        np.testing.assert_array_equal(held[name], values, err_msg=name)
        assert str(values.dtype) == f"torch.{held[name].dtype}"
    assert int(held["norm.num_batches_tracked"]) == 40
    elsewhere(PREDICT, tmp_path / "scorer.safetensors", tmp_path / "made.npy")
    made = np.load(tmp_path / "made.npy")
    np.testing.assert_allclose(made, computed(trained.module), rtol=1e-5, atol=1e-6)


def saved(folder, module):
    path = folder / "module.safetensors"
    ModuleModel(module, columns={"points": "features"}, records=ONE, kind="classes").save(path)
    return path


def test_what_a_file_names_is_trusted_or_imported_already(tmp_path):
    torch.manual_seed(3)
    module = shop.Scorer()
    path = saved(tmp_path, module)
    program = """
import sparknet
from sparknet.errors import FileError
try:
    sparknet.load(sys.argv[1])
except FileError as error:
    print(error)
assert "tests.torch.shop" not in sys.modules
print(sparknet.load(sys.argv[1], trusted=True))
"""
    told = elsewhere(program, path).splitlines()
    assert told == [
        f"{path}: names 'tests.torch.shop:Scorer' for its module, which this program has not "
        "imported: import it, or trust the file (trusted=True)",
        "<LoadedModel 'Scorer'>",
    ]
    for given in (shop.Scorer(), shop.scorer, None):
        loaded = sparknet.load(path, module=given)
        found = loaded.predict(POINTS)["output"]
        np.testing.assert_allclose(found, computed(module), rtol=1e-5, atol=1e-6)


def test_a_module_is_saved_as_a_folder(tmp_path):
    module = shop.Scorer()
    ModuleModel(module, columns={"points": "features"}, records=ONE).save(tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {"model.json", "module.safetensors"}
    for loaded in (
        sparknet.load(tmp_path / "model", trusted=True),
        pickle.loads(pickle.dumps(sparknet.load(tmp_path / "model", module=shop.Scorer))),
    ):
        found = loaded.predict(POINTS)["output"]
        np.testing.assert_allclose(found, computed(module), rtol=1e-5, atol=1e-6)
    assert isinstance(SparkModel(tmp_path / "model").module, shop.Scorer)
    with pytest.raises(SparkError, match="a module has no dialect"):
        SparkModel(tmp_path / "model", dialect="caffe")


def changed(path, **how):
    said = path.with_name("module.sparknet.json")
    said.write_text(json.dumps(json.loads(said.read_text()) | how))


def code(path, **arguments):
    return {"made_by": {"path": path, "arguments": arguments}}


WRONG = {
    "missing package": (
        code("nowhere.shop:Net"),
        True,
        "names 'nowhere.shop:Net' for its module, which cannot be imported: ModuleNotFoundError: "
        "No module named 'nowhere'$",
    ),
    "missing class": (
        code("tests.torch.shop:Nothing"),
        False,
        "names '.*:Nothing' for its module, and 'tests.torch.shop' has no 'Nothing'$",
    ),
    "any function": (
        code("os:system", command="false"),
        False,
        "names 'os:system' for its module, which is neither a class of torch.nn.Module nor",
    ),
    "torch's loader": (code("torch.hub:load", repo_or_dir="x"), False, "neither a class of torch"),
    "unannotated": (code("tests.torch.shop:unannotated"), False, "called only where the file is t"),
    "no code": (code("os.system"), True, "names no code: "),
    "arguments": (
        code("tests.torch.shop:Scorer", width=3),
        False,
        "is of a module that cannot be made: TypeError: ",
    ),
    "another class": (
        code("tests.torch.shop:Grown"),
        False,
        r"'first.weight' is \[6, 4\]; that of module 'Grown' is \[9, 4\]$",
    ),
    "nameless": ({"made_by": None}, True, "does not name what makes its module 'Scorer': give mod"),
    "types": ({"inputs": {"points": {"shape": [4], "dtype": "O"}}}, False, "is no description of"),
    "much": ({"inputs": {"points": {"shape": [4] * 40, "dtype": "f4"}}}, False, "no description"),
    "columns": ({"columns": {}}, False, "is no description of a module: ValueError"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_sentence(tmp_path, name):
    path = saved(tmp_path, shop.Scorer())
    how, trusted, said = WRONG[name]
    changed(path, **how)
    with pytest.raises(FileError, match=said):
        sparknet.load(path, trusted=trusted)


def test_a_wrong_state_dict_is_one_sentence(tmp_path):
    path = saved(tmp_path, shop.Scorer())
    with pytest.raises(FileError, match=r"'first.weight' is \[6, 4\]; that of module 'Scorer' is"):
        sparknet.load(path, module=partial(shop.Scorer, hidden=3))
    with pytest.raises(FileError, match=r"has no '0.weight', which module 'Sequential' has"):
        sparknet.load(path, module=nn.Sequential(nn.Linear(4, 2)))
    with pytest.raises(FileError, match=r"has 'first.weight', which module 'Identity' does not"):
        sparknet.load(path, module=nn.Identity())
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FileError, match=r"lies at .* of .* bytes of numbers"):
        sparknet.load(path)
    (tmp_path / "module.sparknet.json").unlink()
    with pytest.raises(FileError, match=r"module.sparknet.json: No such file"):
        sparknet.load(path)
    with pytest.raises(FileError, match=r"saved as a folder, or as one of .safetensors"):
        ModuleModel(shop.Scorer(), records=ONE).save(tmp_path / "module.pt")
    with pytest.raises(SparkNetError, match=r"'int' object|not int"):
        ModuleModel(3)


# -- pyspark.ml ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session():
    found = local_session(2)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def points(session):
    rows = [(*row, float(label)) for row, label in zip(POINTS.tolist(), LABELS, strict=True)]
    return session.createDataFrame(rows, "a float, b float, c float, d float, side double")


def pipeline(module, **how):
    trainer = Trainer(module=module, target="side", **{**HOW, **how})
    estimator = NetEstimator(trainer, featuresCol="features")
    estimator.setParams(predictionCol="prediction", probabilityCol="probability")
    return Pipeline(
        stages=[VectorAssembler(inputCols=list("abcd"), outputCol="features"), estimator]
    )


AGAIN = """
import numpy as np
import tests.torch.shop
from pyspark.ml import PipelineModel
from sparknet.spark import local_session
from tests.torch.modules import POINTS
session = local_session(1)
model = PipelineModel.load(sys.argv[1])
kinds = ", ".join(f"{name} float" for name in "abcd")
rows = session.createDataFrame([tuple(row) for row in POINTS.tolist()], kinds)
found = model.transform(rows).select("a", "prediction", "probability").collect()
np.save(sys.argv[2], [[row.a, row.prediction, *row.probability] for row in found])
session.stop()
"""


def test_a_pipeline_twice(session, points, tmp_path):
    """It is saved before it is fitted, and what was fitted is saved; both are loaded again."""
    unfitted = pipeline(partial(shop.scorer, hidden=7), strategy="averaging")
    unfitted.save(str(tmp_path / "unfitted"))
    again = Pipeline.load(str(tmp_path / "unfitted"))
    fitted = []
    for one in (unfitted, again):
        torch.manual_seed(7)  # the function draws the first numbers
        fitted.append(one.fit(points))
    first, second = fitted
    states = [one.stages[1].model.module.state_dict() for one in (first, second)]
    for name, values in states[0].items():
        np.testing.assert_array_equal(values, states[1][name], err_msg=name)
    second.save(str(tmp_path / "fitted"))
    made = first.transform(points)
    judged = MulticlassClassificationEvaluator(labelCol="side", metricName="accuracy")
    accuracy = judged.evaluate(made)
    assert accuracy > 0.8
    assert first.stages[1].evaluate(made.drop("prediction", "probability", "output")).accuracy == (
        pytest.approx(accuracy)
    )
    wanted = [
        [row.a, row.prediction, *row.probability]
        for row in made.select("a", "prediction", "probability").collect()
    ]
    elsewhere(AGAIN, tmp_path / "fitted", tmp_path / "made.npy", without="")
    np.testing.assert_allclose(
        sorted(np.load(tmp_path / "made.npy").tolist()), sorted(wanted), rtol=1e-5
    )
    scores = np.array([list(row) for row in made.select("output").toPandas()["output"]])
    odds = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(np.array(wanted)[:, 2:], odds, rtol=1e-5)
    (stage,) = (tmp_path / "fitted" / "stages").glob("1_*")
    loaded = sparknet.load(stage).predict({"features": POINTS})
    places = {row[0]: row[1:] for row in wanted}
    mine = np.column_stack([loaded["prediction"], loaded["probability"]])
    np.testing.assert_allclose(mine, [places[row[0]] for row in POINTS.tolist()], rtol=1e-5)


def test_a_grid_of_optimizers(points):
    lazy, quick = (partial(torch.optim.SGD, lr=rate) for rate in (0.0, 0.5))
    stages = pipeline(shop.Scorer(), workers=1)
    estimator = stages.getStages()[1]
    grid = ParamGridBuilder().addGrid(estimator.optimizer, [lazy, quick]).build()
    judged = MulticlassClassificationEvaluator(labelCol="side", metricName="accuracy")
    found = CrossValidator(
        estimator=stages, estimatorParamMaps=grid, evaluator=judged, numFolds=2, seed=1
    ).fit(points)
    assert found.avgMetrics[1] > 0.75 > found.avgMetrics[0]


def test_an_estimator_begins_with_the_modules_own_numbers(session, tmp_path):
    torch.manual_seed(5)
    module = shop.Scorer()
    given = NetEstimator(Trainer(module=module, **HOW), loss=nn.MSELoss(), clip_gradients=2.0)
    given.save(str(tmp_path / "estimator"))
    found = NetEstimator.load(str(tmp_path / "estimator"))
    trainer = found.trainer
    assert type(trainer.loss) is nn.MSELoss
    assert (trainer.optimizer.func, trainer.clip_gradients) == (torch.optim.SGD, 2.0)
    for name, values in module.state_dict().items():
        np.testing.assert_array_equal(trainer.module.state_dict()[name], values, err_msg=name)


def test_what_cannot_be_saved(session, tmp_path):
    path = str(tmp_path / "stage")
    local = ModuleModel(lambda: shop.Scorer(), records=ONE)
    with pytest.raises(SparkError, match=r"nothing names what makes module 'Scorer' as it is"):
        NetModel(local).save(path)
    with pytest.raises(SparkError, match=r"nothing names what makes module 'Perceptron' as it is"):
        NetModel(ModuleModel(perceptron(norm=True), records=ONE)).save(path)  # Perceptron(False)
    for role, given in {
        "module": shop.Scorer(hidden=9),
        "loss": nn.CrossEntropyLoss(label_smoothing=0.1),
        "optimizer": torch.optim.SGD(Perceptron().parameters(), lr=0.1),
        "lr_schedule": lambda made: made,
    }.items():
        estimator = NetEstimator(Trainer(module=shop.Scorer(), **HOW), **{role: given})
        with pytest.raises(
            SettingError, match=rf"the {role} .* cannot be saved, as no name stands"
        ):
            estimator.save(path)
    with pytest.raises(
        SparkError, match=r"learningRate is a solver's, and a module was given: set"
    ):
        _ = NetEstimator(Trainer(module=shop.Scorer(), **HOW), learningRate=0.1).trainer


def test_a_stage_whose_code_is_not_trusted(session, tmp_path):
    path = tmp_path / "stage"
    NetModel(ModuleModel(shop.unannotated, records=ONE)).save(str(path))
    with pytest.raises(
        FileError, match=rf"{path}: names 'tests.torch.shop:unannotated' for its mod"
    ):
        NetModel.load(str(path))
    model = NetModel.read().trusted().load(str(path))
    assert type(model.model.module) is shop.Scorer
    assert type(sparknet.load(path, trusted=True).model.module) is shop.Scorer
    assert PipelineModel is not None


KINDS = {
    "yes or no": (partial(shop.Scorer, classes=1), "labels"),
    "labels": (partial(shop.Scorer, classes=3), "labels"),
    "number": (partial(shop.Scorer, classes=1), "numbers"),
    "numbers": (partial(shop.Scorer, classes=3), "numbers"),
}


@pytest.mark.parametrize("name", KINDS)
def test_columns_are_what_pyspark_has_of_such(points, name, tmp_path):
    make, kind = KINDS[name]
    torch.manual_seed(2)
    model = ModuleModel(make, columns={"points": "features"}, records=ONE, kind=kind)
    stage = NetModel(
        model,
        predictionCol="prediction",
        probabilityCol="probability",
        rawPredictionCol="raw",
        outputs=[],
    )
    rows = VectorAssembler(inputCols=list("abcd"), outputCol="features").transform(points)
    made = stage.transform(rows).toPandas()
    scores = computed(model.module).astype(np.float64)
    chances = 1 / (1 + np.exp(-scores))
    if name == "yes or no":
        wanted = (scores[:, 0] > 0).astype(float)
        chances = np.column_stack([1 - chances, chances])
    elif name == "labels":
        wanted = [np.flatnonzero(row > 0).astype(float).tolist() for row in scores]
    else:
        wanted = scores[:, 0] if name == "number" else scores
    order = np.argsort(made["a"].to_numpy(), kind="stable")
    mine = np.argsort(POINTS[:, 0], kind="stable")
    found = made["prediction"].iloc[order].tolist()
    for one, other in zip(found, [wanted[at] for at in mine], strict=True):
        np.testing.assert_allclose(np.array(one), other, rtol=1e-5, atol=1e-6)
    assert ("probability" in made) == (kind == "labels")
    if kind == "labels":
        held = np.array([list(row) for row in made["probability"].iloc[order]])
        np.testing.assert_allclose(held, chances[mine], rtol=1e-4, atol=1e-6)
    stage.save_here(tmp_path / "stage")
    again = sparknet.load(tmp_path / "stage").predict({"features": POINTS})
    for one, other in zip(again["prediction"], wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
