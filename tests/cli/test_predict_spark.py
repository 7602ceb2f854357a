"""`predict` and `features` with --spark, and the Parquet files that they write without it."""

import io
import tarfile

import numpy as np
import pytest

from sparknet.cli import main
from tests.cli.conftest import Task

pytest.importorskip("pyspark")
pq = pytest.importorskip("pyarrow.parquet")


def words(verb: str, task: Task, *more: str) -> list[str]:
    return [
        verb,
        "-model",
        task.path("deploy.prototxt"),
        "-weights",
        task.path("model.caffemodel"),
        *more,
    ]


def expected(task, blob="prob"):
    """The values of all images, as a pycaffe script would find them."""
    from sparknet import caffe

    net = caffe.Net(task.path("deploy.prototxt"), task.path("model.caffemodel"), caffe.TEST)
    net.blobs["data"].reshape(*task.images.shape)
    net.blobs["data"].data[...] = task.images
    return net.forward(blobs=[blob])[blob].copy()


def rows_of(folder):
    return pq.read_table(folder).to_pylist()


@pytest.fixture
def images(task, tmp_path):
    """Ten of the task's images: four in a folder, six in a tar."""
    from PIL import Image

    (tmp_path / "images" / "deep").mkdir(parents=True)
    with tarfile.open(tmp_path / "images.tar", "w") as tar:
        for number in range(10):
            data = io.BytesIO()
            Image.fromarray(task.images[number, 0].astype(np.uint8)).save(data, "png")
            if number < 4:
                (tmp_path / f"images/deep/{number}.PNG").write_bytes(data.getvalue())
                continue
            info = tarfile.TarInfo(f"set/{number}.png")
            info.size = len(data.getvalue())
            tar.addfile(info, io.BytesIO(data.getvalue()))
    return tmp_path / "images"


@pytest.mark.slow
def test_images_and_tars(task, images, tmp_path):
    (tmp_path / "labels.txt").write_text("left\nmiddle\nright\n")
    out = str(tmp_path / "out")
    more = ["--labels", str(tmp_path / "labels.txt"), "--top", "2", "--out", out, "--workers", "2"]
    assert main(words("predict", task, str(images), f"{images}.tar", "--spark", *more)) == 0
    rows = sorted(rows_of(tmp_path / "out"), key=lambda row: row["path"][-5])
    places = [f"{images}/deep/{number}.PNG" for number in range(4)]
    places += [f"{images}.tar:set/{number}.png" for number in range(4, 10)]
    assert [row["path"] for row in rows] == places
    for row, scores in zip(rows, expected(task)[:10], strict=True):
        best = np.argsort(-scores)[:2]
        assert [one["label"] for one in row["prob"]] == best.tolist()
        assert [one["name"] for one in row["prob"]] == [
            ("left", "middle", "right")[at] for at in best
        ]
        assert [one["score"] for one in row["prob"]] == pytest.approx(scores[best], abs=1e-6)
        assert row.keys() == {"path", "prob"}


@pytest.mark.slow
def test_a_bad_image(task, images, tmp_path, capsys):
    bad = images / "5.jpg"
    bad.write_bytes(b"no image")
    run = words("features", task, "-blobs", "ip", str(images), "--spark")
    assert main([*run, "-out", str(tmp_path / "raised")]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("sparknet features: "), said
    assert str(bad) in said
    assert not list((tmp_path / "raised").glob("*.parquet"))
    out = tmp_path / "out"
    assert main([*run, "-out", str(out), "--invalid", "null", "--reason", "why"]) == 0
    rows = {row["path"]: row for row in rows_of(out)}
    assert len(rows) == 5
    assert rows[str(bad)]["ip"] is None
    assert "5.jpg" in rows[str(bad)]["why"] or "image" in rows[str(bad)]["why"]
    good = rows[str(images / "deep" / "2.PNG")]
    assert good["why"] is None
    assert good["ip"] == pytest.approx(expected(task, "ip")[2].ravel().tolist(), rel=1e-5)
    assert main([*run, "-out", str(out)]) == 1
    assert "already exists" in capsys.readouterr().err.lower()


def test_a_table(task, tmp_path):
    import pyarrow as pa

    pixels = [image.astype(np.uint8).tobytes() for image in task.images]
    table = pa.table({"pixels": pixels, "id": list(range(len(pixels)))})
    pq.write_table(table, tmp_path / "in.parquet")
    more = ["--spark", "--columns", "data=pixels", "-out", str(tmp_path / "out")]
    assert main(words("features", task, "-blobs", "prob", str(tmp_path / "in.parquet"), *more)) == 0
    rows = sorted(rows_of(tmp_path / "out"), key=lambda row: row["id"])
    assert rows[0].keys() == {"id", "prob"}
    np.testing.assert_allclose([row["prob"] for row in rows], expected(task), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--master", "local[1]", "x.parquet"], "--master is for work on Spark"),
        (["--spark", "x.parquet"], "--spark writes Parquet"),
        (["--spark", "--out", "x"], "give INPUT or --sql QUERY"),
    ],
)
def test_wrong_use(task, more, said, capsys):
    assert main(words("predict", task, *more)) == 2
    assert said in capsys.readouterr().err.replace("\n", " ")


def test_parquet_without_spark(task, tmp_path):
    out = tmp_path / "x.parquet"
    assert main(words("predict", task, task.path("lmdb"), "--top", "1", "--out", str(out))) == 0
    rows = rows_of(out)
    assert [row["input"] for row in rows] == [str(number) for number in range(60)]
    best = expected(task).argmax(1)
    assert [row["prob"][0]["label"] for row in rows] == best.tolist()
    more = ["-blobs", "ip,prob", "-out", str(out), "--batch", "7"]
    assert main(words("features", task, task.path("lmdb"), *more)) == 0
    rows = rows_of(out)
    np.testing.assert_allclose([row["prob"] for row in rows], expected(task), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose([row["ip"] for row in rows], expected(task, "ip"), rtol=1e-4)
