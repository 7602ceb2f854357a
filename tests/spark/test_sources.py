"""Caffe's data sets as formats of Spark: in batches, SQL and streams."""

import os
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", minversion="4.0")

from sparknet.cli.record_files import write_database
from sparknet.loaders.datums import datum_bytes, encoded_bytes
from tests.loaders.random_images import encoded
from tests.spark.cluster import HOME, ROOT, environment, until
from tests.spark.conftest import CONNECT
from tests.spark.test_videos import write_video

CLASSES = ("cat", "dog", "eel")
COUNT = 7
"""Records of a data set."""
FILES = 6
"""Data sets of a stream."""


@pytest.fixture
def reader(session):
    """The session, which knows the formats."""
    from sparknet.spark.sources import register_sources

    register_sources(session)
    return session


def hdf5_file(path: Path, number: int = 0) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["data"] = np.arange(3 * COUNT, dtype=np.float32).reshape(COUNT, 3) + 100 * number
        file["label"] = np.arange(COUNT) + COUNT * number


def lmdb(path: Path, number: int = 0) -> None:
    labels = range(COUNT * number, COUNT * (number + 1))
    values = (datum_bytes(np.full((1, 2, 2), label, np.uint8), label) for label in labels)
    write_database(path, ((f"{key:04}".encode(), value) for key, value in enumerate(values)))


def tar(path: Path, number: int = 0) -> None:
    import io

    with tarfile.open(path, "w") as file:
        for count, name in enumerate(CLASSES):
            data = encoded("RGB", 8, 8, 3 * number + count)
            info = tarfile.TarInfo(f"{name}/{number}.jpg")
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))


def images(folder: Path, number: int = 0) -> None:
    for count, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True, exist_ok=True)
        draft = folder.parent / f"draft-{number}-{count}"
        draft.write_bytes(encoded("RGB", 8, 8, 3 * number + count))
        draft.rename(folder / name / f"{number}.jpg")


def read(session, kind, path, **options):
    return session.read.format(f"caffe.{kind}").options(**options).load(str(path))


def test_hdf5_files_of_a_folder(reader, tmp_path):
    for number in range(2):
        hdf5_file(tmp_path / f"{number}.h5", number)
    hdf5_file(tmp_path / "_draft.h5")
    frame = read(reader, "hdf5", tmp_path, partitions=3)
    assert frame.dtypes == [("data", "binary"), ("label", "bigint")]
    assert frame.schema["data"].metadata == {"sparknet_shape": [3]}
    numbered = frame.selectExpr("*", "spark_partition_id() AS part").collect()
    rows = sorted(numbered, key=lambda row: row.label)
    assert [row.label for row in rows] == list(range(2 * COUNT))
    assert [row.part for row in rows] == [0] * 4 + [1] * 5 + [2] * 5
    assert np.frombuffer(rows[COUNT + 1].data, np.float32).tolist() == [103, 104, 105]
    (tmp_path / "list.txt").write_text(f"{tmp_path}/1.h5\n")
    assert read(reader, "hdf5", tmp_path / "list.txt").agg({"label": "min"}).first()[0] == COUNT


def test_an_lmdb_in_sql_and_the_labels_of_damaged_images(reader, tmp_path):
    lmdb(tmp_path / "plain")
    options = f"OPTIONS (path '{tmp_path}/plain')"
    reader.sql(f"CREATE OR REPLACE TEMPORARY VIEW digits USING caffe.lmdb {options}")
    (row,) = reader.sql("SELECT count(*) AS n, sum(label) AS s FROM digits").collect()
    assert (row.n, row.s) == (COUNT, sum(range(COUNT)))
    (row,) = reader.sql("SELECT data FROM digits WHERE label = 5").collect()
    assert row.data == bytes([5] * 4)
    damaged = [encoded_bytes(encoded("RGB", 8, 8), 1), encoded_bytes(b"\xff\xd8\xff no image", 2)]
    write_database(tmp_path / "damaged", zip((b"a", b"b"), damaged, strict=True))
    options = f"(label BIGINT) USING caffe.lmdb OPTIONS (path '{tmp_path}/damaged')"
    reader.sql(f"CREATE OR REPLACE TEMPORARY VIEW labels {options}")
    assert [row.label for row in reader.table("labels").collect()] == [1, 2]
    assert read(reader, "lmdb", tmp_path / "damaged", invalid="drop").count() == 1
    with pytest.raises(Exception, match=r"damaged, record 1: cannot be decoded|record 1"):
        read(reader, "lmdb", tmp_path / "damaged").collect()


def test_images_and_tars_in_the_order_of_their_classes(reader, tmp_path):
    images(tmp_path / "pictures")
    tar(tmp_path / "a.tar")
    for kind, path in {"images": tmp_path / "pictures", "tars": tmp_path / "a.tar"}.items():
        frame = read(reader, kind, path, size="4x6", color="grey")
        assert frame.schema["data"].metadata == {"sparknet_shape": [1, 4, 6]}
        assert frame.schema["label"].metadata == {"sparknet_classes": list(CLASSES)}
        by_label = {row.label: bytes(row.data) for row in frame.collect()}
        turned = read(reader, kind, path, size="4x6", color="grey", classes="eel, dog,cat")
        assert {2 - row.label: bytes(row.data) for row in turned.collect()} == by_label
        labels = reader.read.format(f"caffe.{kind}").schema("label long").load(str(path))
        assert sorted(row.label for row in labels.collect()) == [0, 1, 2]


def test_videos_in_sql_and_as_jpegs(reader, tmp_path):
    for name in "ab":
        write_video(tmp_path / f"{name}.mp4", 15)
    options = f"OPTIONS (path '{tmp_path}', every 0.5, span 1)"
    reader.sql(f"CREATE OR REPLACE TEMPORARY VIEW frames USING caffe.videos {options}")
    query = "SELECT path, index, image.data, spark_partition_id() AS part FROM frames"
    rows = sorted(reader.sql(query).collect())
    assert [tuple(row[:2]) for row in rows] == [
        (f"{tmp_path}/{name}.mp4", index) for name in "ab" for index in (0, 5, 10)
    ]
    assert [row.part for row in rows] == [0, 0, 1, 2, 2, 3]
    for row in rows:
        assert abs(np.mean(bytearray(row.data)) - (6 * row[1] + 20)) < 4
    frames = reader.read.format("caffe.videos").schema("content binary, seconds double")
    (frame,) = frames.load(f"{tmp_path}/a.mp4").where("seconds = 1.0").collect()
    assert bytes(frame.content).startswith(b"\xff\xd8")


REFUSED = [
    ("hdf5", {"siz": "3"}, r"format caffe.hdf5 has no option 'siz': it takes path, partitions"),
    ("lmdb", {"size": "large"}, r"options of caffe.lmdb: invalid literal .*'large'"),
    ("hdf5", {"partitions": "-1"}, r"option 'partitions' is '-1': a number above 0 is needed"),
    ("tars", {}, r"holds no data set of caffe.tars: a stream of it needs a schema"),
    ("videos", {}, r"holds no data set of caffe.videos"),
    ("videos", {"every": "0"}, r"every is 0.0: seconds above 0 are needed"),
    ("videos", {"partitions": "2"}, r"has no option 'partitions': it takes path, max"),
]


@pytest.mark.parametrize(("kind", "options", "sentence"), REFUSED)
def test_what_is_refused(reader, tmp_path, kind, options, sentence):
    if kind == "hdf5":
        hdf5_file(tmp_path / "a.h5")
    if kind == "lmdb":
        lmdb(tmp_path / "a")
    with pytest.raises(Exception, match=sentence):
        read(reader, kind, tmp_path, **options).count()


MAKERS = {
    "hdf5": (lambda folder, number: hdf5_file(folder / f"{number}.h5", number), {}),
    "lmdb": (lambda folder, number: lmdb(folder / str(number), number), {}),
    "tars": (lambda folder, number: tar(folder / f"{number}.tar", number), {"classes": "x,y,z"}),
    "images": (images, {"classes": ",".join(CLASSES)}),
    "videos": (lambda folder, number: write_video(folder / f"{number}.mp4", COUNT), {}),
}


def start(session, kind, folder, options, **trigger):
    """The records of a stream of a folder as files."""
    schema = "index long, content binary" if kind == "videos" else "label long, data binary"
    source = session.readStream.format(f"caffe.{kind}").schema(schema)
    frame = source.options(**options, maxFilesPerTrigger=1).load(str(folder / "in"))
    sink = frame.writeStream.format("parquet")
    sink = sink.option("checkpointLocation", str(folder / "checkpoint"))
    return sink.trigger(**trigger).start(str(folder / "out"))


def labels_of(session, folder):
    return Counter(row[0] for row in session.read.parquet(str(folder / "out")).collect())


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("lmdb", "videos")]


@pytest.mark.parametrize("kind", ["images", *SLOW])
def test_a_stream_reads_what_arrives(reader, tmp_path, kind):
    make, options = MAKERS[kind]
    (tmp_path / "in").mkdir()
    expected = Counter({0: 0})
    for number in range(2):
        make(tmp_path / "in", number)
        assert start(reader, kind, tmp_path, options, availableNow=True).awaitTermination(120)
        lmdbs = range(COUNT * number, COUNT * (number + 1))
        expected.update({"lmdb": lmdbs, "videos": range(COUNT), "images": range(3)}[kind])
        assert labels_of(reader, tmp_path) == +expected


@pytest.mark.slow
def test_a_stream_must_know_the_classes(reader, tmp_path):
    (tmp_path / "in").mkdir()
    images(tmp_path / "in")
    query = start(reader, "images", tmp_path, {}, availableNow=True)
    with pytest.raises(Exception, match=r"a stream of caffe.images needs the option classes"):
        query.awaitTermination(120)
    query = start(reader, "images", tmp_path, {"classes": "cat,dog"}, availableNow=True)
    with pytest.raises(Exception, match=r"eel/0.jpg: lies in no folder of the classes cat, dog"):
        query.awaitTermination(120)


@pytest.mark.slow
@pytest.mark.skipif(CONNECT, reason="the process that is killed has a classic session of its own")
@pytest.mark.parametrize("kind", ["hdf5", "videos"])
def test_a_stream_that_is_killed_reads_each_record_once(reader, tmp_path, kind):
    make, options = MAKERS[kind]
    (tmp_path / "in").mkdir()
    make(tmp_path / "in", 0)
    command = [sys.executable, "-m", "tests.spark.test_sources", kind, str(tmp_path)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        until(lambda: list((tmp_path / "out").glob("part-*")), "the first batch is written", 120)
        for number in range(1, FILES):
            make(tmp_path, number)
            (file,) = tmp_path.glob(f"{number}.*")
            file.rename(tmp_path / "in" / file.name)
        until(lambda: len(list((tmp_path / "out").glob("part-*"))) > 1, "more is written", 60)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert start(reader, kind, tmp_path, options, availableNow=True).awaitTermination(120)
    records = {"hdf5": range(COUNT * FILES), "videos": [*range(COUNT)] * FILES}[kind]
    assert labels_of(reader, tmp_path) == Counter(records)


@pytest.mark.slow
@pytest.mark.long
def test_a_declarative_pipeline(tmp_path):
    """The block of docs/data-sources.md, in a pipeline that also reads a stream of a folder."""
    pytest.importorskip("pyspark.pipelines")
    (tmp_path / "in").mkdir()
    for path in (tmp_path / "points.h5", tmp_path / "in" / "0.h5"):
        hdf5_file(path)
    page = (ROOT / "docs" / "data-sources.md").read_text()
    block = page.rpartition("```python\n")[2].partition("```")[0].replace("/data", str(tmp_path))
    block += f"""

@dp.table
def arrived():
    return spark.readStream.format("caffe.hdf5").load("{tmp_path}/in")
"""
    (tmp_path / "points.py").write_text(block)
    (tmp_path / "pipeline.yml").write_text(
        f"name: points\nstorage: file://{tmp_path}/storage\n"
        "libraries:\n  - glob:\n      include: points.py\n"
    )
    command = [str(HOME / "bin" / "spark-pipelines"), "run", "--spec", "pipeline.yml"]
    command += ["--conf", "spark.ui.enabled=false"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    log = ran.stdout + ran.stderr
    assert "Run is COMPLETED" in log
    # PySpark 4.3 does not know the metrics that tasks of Python send after the last event.
    assert ran.returncode == 0 or "[UNKNOWN_RESPONSE] Unknown response: Plan observed" in log
    import pyarrow.dataset as dataset

    for table in ("points", "arrived"):
        files = dataset.dataset(tmp_path / "spark-warehouse" / table, exclude_invalid_files=True)
        assert sorted(files.to_table()["label"].to_pylist()) == list(range(COUNT))


def main() -> None:
    """The driver that is killed."""
    from sparknet.spark import local_session
    from sparknet.spark.sources import register_sources

    session = local_session(1)
    register_sources(session)
    kind, folder = sys.argv[1:]
    start(session, kind, Path(folder), {}, processingTime="0 seconds").awaitTermination()


if __name__ == "__main__":
    main()
