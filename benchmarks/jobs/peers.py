"""The other engines' way from a column's values to vectors, each at its best."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs.data import JOBS, MEAN, SIDE, STD, Job

Values = Sequence[Any]


@cache
def peer(folder: str, name: str, library: str, threads: int) -> Peer:
    """Return the same peer for all tasks of a process."""
    return Peer(folder, name, library, threads)


class Peer:
    """ONNX Runtime or PyTorch (channels last) over rows of a job, in as many threads."""

    def __init__(self, folder: str, name: str, library: str, threads: int) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        self.job = JOBS[name]
        self._run = (_onnxruntime if library == "onnxruntime" else _torch)(
            Path(folder), self.job, threads
        )
        if self.job.is_text:
            from tokenizers import Tokenizer

            self._tokenizer = Tokenizer.from_file(str(Path(folder) / "minilm.json"))
            self._tokenizer.enable_padding()

    def __call__(self, values: Values) -> Any:
        """Return a row of float32 for each value."""
        if self.job.is_text:
            return self._embed([str(value) for value in values])
        return self._run(records(self.job, values)).reshape(len(values), -1)

    def _embed(self, texts: list[str]) -> Any:
        """Means of the tokens' vectors; texts of about one length go together."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        vectors = np.empty((len(texts), 384), np.float32)
        for begin in range(0, len(texts), self.job.batch):
            places = order[begin : begin + self.job.batch]
            encoded = self._tokenizer.encode_batch([texts[place] for place in places])
            ids = np.array([one.ids for one in encoded], np.int64)
            mask = np.array([one.attention_mask for one in encoded], np.int64)
            weights = mask[:, :, None].astype(np.float32)
            vectors[places] = (self._run(ids, mask) * weights).sum(1) / weights.sum(1)
        return vectors


def records(job: Job, values: Values) -> Any:
    """Return the values as the net's input."""
    if job.is_photographs:
        mean, std = (np.array(one, np.float32).reshape(3, 1, 1) for one in (MEAN, STD))
        planes = np.stack([picture(value) for value in values])
        return (planes - mean) / std
    if job.is_video:
        pixels = np.frombuffer(b"".join(values), np.uint8).reshape(-1, SIDE, SIDE, 3)
        return np.ascontiguousarray(pixels[..., ::-1].transpose(0, 3, 1, 2), np.float32) / 255
    if job.column == "values":
        rows = values if isinstance(values, np.ndarray) and values.ndim == 2 else np.stack(values)
        return np.ascontiguousarray(rows, np.float32)
    pixels = np.frombuffer(b"".join(values), np.uint8)
    return pixels.reshape(-1, *job.shape).astype(np.float32)


def picture(data: bytes) -> Any:
    """256 x 256 by Pillow in the detail that is needed, the centre of 224 x 224."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        reduced = image.draft("RGB", (256, 256))
        small = image.convert("RGB").resize(
            (256, 256), Image.Resampling.BILINEAR, box=reduced and reduced[1]
        )
        return np.asarray(small.crop((16, 16, 240, 240))).transpose(2, 0, 1)


def _onnxruntime(folder: Path, job: Job, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(folder / f"{job.net}.onnx"), options)
    names = [one.name for one in session.get_inputs()]
    return lambda *inputs: session.run(None, dict(zip(names, inputs, strict=True)))[0]


def _torch(folder: Path, job: Job, threads: int) -> Any:
    import torch

    from benchmarks.jobs.data import torch_net

    torch.set_num_threads(threads)
    net = torch_net(job)
    net.load_state_dict(torch.load(folder / f"{job.net}.pt", weights_only=True))
    layout = torch.channels_last if len(job.shape) == 3 else torch.preserve_format
    net = net.to(memory_format=layout)

    def run(*inputs: Any) -> Any:
        with torch.inference_mode():
            tensors = [torch.from_numpy(one) for one in inputs]
            tensors = [one.to(memory_format=layout) for one in tensors]
            return net(*tensors).numpy()

    return run
