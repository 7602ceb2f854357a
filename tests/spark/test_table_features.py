"""A net that was trained on columns of a table predicts from a table of the same columns."""

from pathlib import Path

import numpy as np
import pytest

from sparknet import SolverParams, load, train
from sparknet.cli import main
from sparknet.errors import DataError, FileError, SparkError, SparkNetError
from sparknet.predict.input_columns import InputSpec, arrays

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 16 dim: 2 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 16 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
RNG = np.random.default_rng(5)
TABLE = pd.DataFrame({"age": RNG.normal(size=96), "height": RNG.normal(size=96), "id": range(96)})
TABLE["sex"] = np.where(TABLE.age > TABLE.height, "m", "f")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a saved model, and what it makes of the arrays that the features are."""
    folder = tmp_path_factory.mktemp("features")
    (folder / "net.prototxt").write_text(NET)
    solver = SolverParams(
        net=str(folder / "net.prototxt"), base_lr=0.5, lr_policy="fixed", random_seed=3
    )
    trained = train(solver, TABLE, features=["height", "age"], label="sex", steps=60, workers=1)
    trained.save(folder / "model")
    trained.net.save(folder / "file.caffemodel")
    records = TABLE[["height", "age"]].to_numpy(np.float32)
    return folder, load(folder / "model").predict(records)["ip"]


def test_columns_are_found_by_name(saved):
    folder, scores = saved
    for path in ("model", "file.caffemodel"):
        predicted = load(folder / path).predict(TABLE[["sex", "age", "height"]], best="class")
        assert np.array_equal(np.stack(predicted["ip"]), scores)
    names = np.array(["f", "m"])[predicted["class"]]
    assert (names == TABLE.sex).mean() > 0.9


def test_a_missing_column_is_named(saved):
    folder, _ = saved
    with pytest.raises(DataError, match=r"no column 'height', one of the 2 features .* 'data'"):
        load(folder / "model").predict(TABLE[["age"]])
    with pytest.raises(DataError, match="column 'age' holds values such as 'x', not numbers"):
        load(folder / "model").predict(TABLE.assign(age="x"))


@pytest.mark.parametrize("name", ["table.parquet", "table.csv"])
def test_the_command_line_reads_tables(name, saved, tmp_path, monkeypatch, capsys):
    folder, scores = saved
    monkeypatch.chdir(tmp_path)
    TABLE.to_parquet("table.parquet") if "parquet" in name else TABLE.to_csv(name, index=False)
    assert main(["predict", str(folder / "model"), name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["fm"[one] for one in scores.argmax(1)]

    solver = (
        f'net: "{folder}/net.prototxt" base_lr: 0.5 lr_policy: "fixed" max_iter: 60 random_seed: 3'
    )
    Path("solver.prototxt").write_text(solver)
    table = ["--data", name, "--features", "height,age", "--label", "sex"]
    assert main(["train", "solver.prototxt", *table, "--out", "again"]) == 0
    assert np.array_equal(np.stack(load("again").predict(TABLE)["ip"]), scores)

    with pytest.raises(FileError, match=f"{name}: has no column 'weight'; did you mean 'height'"):
        train("solver.prototxt", name, features=["weight"], label="sex", steps=1)


def test_spark_predicts_from_a_table(saved, spark):
    from sparknet.spark import SparkModel

    folder, scores = saved
    frame = spark.createDataFrame(TABLE)
    made = SparkModel(folder / "model").transform(frame, ["ip"])
    assert made.columns == [*TABLE.columns, "ip"]
    assert np.array_equal(np.array([row.ip for row in made.orderBy("id").collect()]), scores)
    with pytest.raises(DataError, match="no column 'age'"):
        SparkModel(folder / "model").transform(frame.drop("age"))
    odd = frame.selectExpr("height", "nullif(id, 7) AS age", "id")
    row = SparkModel(folder / "model").transform(odd, invalid="null", reason="why").where("id = 7")
    assert row.first().why == "column 'age' is null: fill such rows, or filter them out"


@pytest.mark.parametrize(
    ("values", "name"),
    [([[1.0, 2.0], [None, 3.0]], "age"), ([b"xx", b"xxx"], "data"), ([1.0, None], "data")],
    ids=["features", "bytes", "numbers"],
)
def test_an_error_names_a_column_that_is_there(values, name):
    batch = pa.record_batch([pa.array(values)], ["data"])
    with pytest.raises(SparkError, match=f"^column '{name}' "):
        arrays(batch, {"data": "data"}, {"data": InputSpec((2,), features=("age", "height"))})


def test_spark_trains_on_a_table(saved, spark, tmp_path):
    from sparknet.spark import Trainer
    from sparknet.spark.pipeline import NetEstimator

    folder, _ = saved
    net = str(folder / "net.prototxt")
    solver = SolverParams(net=net, base_lr=0.5, lr_policy="fixed", random_seed=3)
    table = spark.createDataFrame(TABLE)
    columns = {"features": ["height", "age"], "label": "sex"}
    trained = Trainer(solver, workers=1, steps=60, **columns).fit(table, table)
    assert trained.net.labels == ("f", "m")
    rows = trained.model.transform(table.drop("sex"), best="class").orderBy("id").collect()
    assert (np.array(["f", "m"])[[int(row["class"]) for row in rows]] == TABLE.sex).mean() > 0.9
    trained.save(tmp_path / "model")
    predicted = load(tmp_path / "model").predict(TABLE.drop(columns="sex"))
    assert np.array_equal(np.stack(predicted["ip"]), [row.ip for row in rows])

    by_name = table.selectExpr("age AS Age", "height", "id", "sex")
    many = table.selectExpr("age", "height", "concat('x', id) AS sex")
    for rows, changed, message in (
        (table, {"features": ["height", "ages"]}, "no column 'ages', .* did you mean 'age'"),
        (by_name, {}, "no column 'age', one of the 2 features of the net's input 'data'"),
        (table.withColumn("data", table.age), {}, "has a column 'data', and features make"),
        (table, {"features": ["age", "sex"], "label": "id"}, "'sex' is of type string, and a fea"),
        (
            table.selectExpr("height", "double('inf') AS age", "sex"),
            {},
            "column 'age' holds inf, no number of float32",
        ),
        (many, {}, "has 96 classes, and the net's loss has 2"),
        (table, {"label": "sexes"}, "no column 'sexes'"),
        (table, {"features": None}, "label='sex' needs features"),
    ):
        with pytest.raises(SparkNetError, match=message):
            Trainer(solver, steps=1, **(columns | changed)).fit(rows)
    with pytest.raises(SparkError, match="one column: put a VectorAssembler before"):
        NetEstimator(Trainer(solver, steps=1, **columns))


def test_it_evaluates_with_and_without_spark(saved, spark):
    from sparknet.spark import SparkModel

    folder, scores = saved
    model, table = load(folder / "model"), TABLE.assign(truth=(TABLE.sex == "m").astype(int))
    by_name, by_number = model.evaluate(table, "sex"), model.evaluate(table, "truth")
    assert by_name.accuracy == by_number.accuracy == (scores.argmax(1) == table.truth).mean()
    of_spark = SparkModel(folder / "model").evaluate(spark.createDataFrame(table), "truth")
    assert by_name.confusion.tolist() == of_spark.confusion.tolist()

    table.loc[[2, 5], "age"] = np.nan
    with pytest.raises(SparkError, match=r"column 'age' holds nan.*row 2"):
        model.evaluate(table, "truth")
    left = model.evaluate(table, "truth", invalid="drop")
    assert (left.rows, left.dropped) == (94, 2)
    for rows, label, message in (
        (TABLE.assign(sex="x"), "sex", "class 'x', and the net's classes are 'f', 'm'"),
        (TABLE, None, "no column 'label' to compare 'ip' with"),
    ):
        with pytest.raises(SparkNetError, match=message):
            model.evaluate(rows, label)
