"""Rows that cannot be read: raised with their place, kept with nulls, or dropped."""

from io import BytesIO

import numpy as np
import pytest

pytest.importorskip("pyspark")

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.spark import SparkModel
from tests.spark.conftest import null_in_list
from tests.spark.test_model import last_words

SIZE = 8
PICTURES = f"""
layer {{ name: "in" type: "Input" top: "data"
  input_param {{ shape {{ dim: [4, 3, {SIZE}, {SIZE}] }} }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }} }}
"""
POINTS = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: [4, 3] } } }
layer { name: "root" type: "Power" bottom: "x" top: "root" power_param { power: 0.5 } }
"""
GOOD, BROKEN = 40, (3, 17)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Forty pictures, of which two cannot be read: one is cut short, one is no picture."""
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for number in range(GOOD):
        data = BytesIO()
        image.fromarray(rng.integers(0, 256, (SIZE, SIZE, 3), np.uint8)).save(data, "PNG")
        written = data.getvalue()
        if number == BROKEN[0]:
            written = written[: len(written) // 2]
        if number == BROKEN[1]:
            written = b"no picture"
        (folder / f"{number:02}.png").write_bytes(written)
    return folder


@pytest.fixture(scope="module")
def pictures(session, folder):
    data = session.read.format("binaryFile").load(folder.as_uri()).coalesce(1)
    return data.selectExpr("path", "substring(path, -6, 2) AS number", "content")


def model() -> SparkModel:
    return SparkModel(Net(PICTURES, seed=1), columns={"data": "content"})


def expected(folder):
    from PIL import Image

    net = Net(PICTURES, seed=1)
    found = {}
    for number in set(range(GOOD)) - set(BROKEN):
        pixels = np.asarray(Image.open(folder / f"{number:02}.png"))
        found[number] = net.forward({"data": pixels[None, :, :, ::-1].transpose(0, 3, 1, 2)})["ip"][
            0
        ]
    return found


def test_one_picture_that_cannot_be_read_is_named_by_its_path(pictures, folder):
    said = last_words(model().transform(pictures, batch=7))
    names = [(folder / f"{number:02}.png").as_uri() for number in BROKEN]
    paths = [name.replace("file:///", "file:/") for name in names]
    assert any(said.endswith(f"({path})") for path in (*names, *paths)), said
    assert said.startswith("sparknet.errors.FileError: column 'content'")
    by_key = last_words(model().transform(pictures, key="number"))
    assert by_key.endswith((" (number 03)", " (number 17)"))


@pytest.mark.parametrize(
    "bad",
    [
        "if(id = 50, array(1.0D, 2.0D), array(id, id, id))",  # which cannot be read
        "if(id = 50, array(-1.0D, 1.0D, 1.0D), array(id, id, id))",  # of which the net makes NaN
    ],
)
def test_a_bad_row_behind_those_of_a_limit(session, bad):
    """It lies in the first batch of the net."""
    rows = session.range(0, 200, 1, 1).selectExpr("id", f"{bad} AS x")
    made = SparkModel(Net(POINTS)).transform(rows, ["root"], batch=64)
    assert [row.root[0] for row in made.limit(3).collect()] == pytest.approx([0, 1, 2**0.5])
    assert [row.id for row in made.limit(50).collect()] == list(range(50))
    assert last_words(made).endswith("(partition 0, row 50)")


def test_rows_that_cannot_be_read_become_null(pictures, folder):
    made = model().transform(pictures, batch=7, invalid="null", reason="why", best="class")
    assert made.columns == ["path", "number", "content", "ip", "class", "why"]
    rows = made.collect()
    assert [row.path for row in rows] == [row.path for row in pictures.select("path").collect()]
    wanted = expected(folder)
    for row in rows:
        number = int(row.number)
        if number in BROKEN:
            assert row.ip is row["class"] is None
            assert row.why.startswith("column 'content'")
        else:
            assert row.why is None
            np.testing.assert_allclose(row.ip, wanted[number], rtol=1e-4, atol=1e-3)
            assert row["class"] == wanted[number].argmax()


def test_rows_that_cannot_be_read_are_dropped(pictures, folder):
    made = model().transform(pictures, batch=7, invalid="drop")
    order = [int(row.number) for row in pictures.select("number").collect()]
    rows = made.collect()
    assert [int(row.number) for row in rows] == [one for one in order if one not in BROKEN]
    wanted = expected(folder)
    for row in rows:
        np.testing.assert_allclose(row.ip, wanted[int(row.number)], rtol=1e-4, atol=1e-3)


WRONG = {
    1: None,
    4: [1.0, float("nan"), 0.0],
    5: [1.0, None, 0.0],
    9: [1.0, 2.0],
    10: [-1.0, 1.0, 1.0],  # whose root is NaN
}


def test_every_kind_of_bad_row(session):
    rows = [(n, WRONG.get(n, [float(n), 1.0, 4.0])) for n in range(12)]
    data = session.createDataFrame(rows, "n int, x array<double>").coalesce(1)
    found = (
        SparkModel(POINTS, random=True)
        .transform(data, batch=4, invalid="null", reason="why")
        .collect()
    )
    assert [row.n for row in found] == list(range(12))
    said = {row.n: row.why for row in found if row.why is not None}
    assert said == {
        1: "column 'x' is null: fill such rows, or filter them out",
        4: "column 'x' holds nan, no number of float32: fill or filter it",
        5: null_in_list("x"),
        9: "column 'x' has 2 values per row, but the net takes (3,)",
        10: "blob 'root' became nan, though its record has finite values",
    }
    for row in found:
        if row.n in WRONG:
            assert row.root is None
        else:
            np.testing.assert_allclose(row.root, [row.n**0.5, 1, 2], rtol=1e-5)
    kept = SparkModel(POINTS, random=True).transform(data, invalid="drop").collect()
    assert [row.n for row in kept] == [n for n in range(12) if n not in WRONG]


def test_ten_thousand_rows_stay_ten_thousand(session):
    """In batches that divide neither the rows nor Spark's Arrow batches."""
    data = session.range(0, 10_000, 1, 3).selectExpr(
        "id", "array(id, id + 1, 4) AS x", "concat('row ', id) AS told"
    )
    made = SparkModel(POINTS, random=True).transform(data, batch=37).collect()
    assert [(row.id, row.told) for row in made] == [(n, f"row {n}") for n in range(10_000)]
    roots = np.array([row.root for row in made])
    numbers = np.arange(10_000.0)
    wanted = np.sqrt(np.stack([numbers, numbers + 1, np.full(10_000, 4.0)], 1))
    np.testing.assert_allclose(roots, wanted, rtol=1e-5)


def test_what_invalid_may_be(session):
    data = session.createDataFrame([([1.0, 2.0, 3.0],)], "x array<double>")
    with pytest.raises(SparkError, match="invalid is 'skip': it is one of raise, null, drop"):
        SparkModel(POINTS, random=True).transform(data, invalid="skip")
    with pytest.raises(SparkError, match=r"reason names a column .* with invalid='null'"):
        SparkModel(POINTS, random=True).transform(data, reason="why")
    with pytest.raises(SparkError, match="the data has no column 'number' to name rows by"):
        SparkModel(POINTS, random=True).transform(data, key="number")
    with pytest.raises(SparkError, match="the data has a column 'x' already"):
        SparkModel(POINTS, random=True).transform(data, invalid="null", reason="x")
