"""Measures sentence embeddings on Spark: rows a second and memory, beside ONNX Runtime.

    python -m benchmarks.spark_texts [--texts 50000] [--rounds 5] [--threads 2] [--folder DIRECTORY]
        [--export-python PATH] [--sorted]

In turn, one task and as many threads on all sides: SparkModel with a tokenizer and pooling="mean",
and predict_batch_udf with onnxruntime and tokenizers, in batches of 64 padded to their longest
text; --sorted has it sort the texts of an Arrow batch by length, as SparkModel does.  The model is
of MiniLM's size with random weights; the texts are drawn, their lengths are mixed (a logarithmic
normal distribution, half of them below 20 words, cut off at 256 tokens).  Each round is a part of
the texts.  Memory is the most that the Python worker had for itself (USS).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.peers.process import ROOT
from benchmarks.spark_predict import MEGABYTE, drop
from sparknet.spark import SparkModel, local_session

WORDS = 30_522
LONGEST = 256
BATCH = 64
DAEMON = b"sparknet.spark.worker_daemon"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, help="where the exported model is kept")
    parser.add_argument("--export-python", default=sys.executable, metavar="PATH")
    parser.add_argument("--sorted", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = asked.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        model, tokenizer = folder / "minilm-2.onnx", folder / "tokenizer.json"
        if not model.exists():
            words = [asked.export_python, "-m", "benchmarks.modern.models", str(folder)]
            words += ["minilm", "2", "lengths"]
            subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        write_tokenizer(tokenizer)
        config = {"spark.python.worker.reuse": "false"}
        session = local_session(1, threads=asked.threads, config=config)
        measure(session, model, tokenizer, asked)


def measure(session: Any, model: Path, tokenizer: Path, asked: Any) -> None:
    texts = drawn(asked.texts)
    each = -(-len(texts) // asked.rounds)
    parts = [frame(session, texts[begin : begin + each]) for begin in range(0, len(texts), each)]
    ours = SparkModel(
        str(model), tokenizer=str(tokenizer), columns={"input_ids": "text"}, pooling="mean"
    )
    theirs = function(model, tokenizer, asked.threads, asked.sorted)
    ways: dict[str, Callable[[Any], Any]] = {
        "SparkModel": lambda data: ours.transform(data).select("pooled"),
        "predict_batch_udf": lambda data: data.select(theirs("text").alias("pooled")),
    }
    check(*(way(frame(session, texts[:100])).toPandas() for way in ways.values()))
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    memory = dict.fromkeys(ways, 0)
    for place, data in enumerate(parts):
        for way in list(ways)[:: 1 if place % 2 == 0 else -1]:
            with Watch() as watch:
                begun = time.perf_counter()
                drop(ways[way](data))
                seconds[way].append(time.perf_counter() - begun)
            memory[way] = max(memory[way], watch.most)
    if not all(memory.values()):
        raise SystemExit("no Python worker was found whose memory could be read")
    print("| way | rows a second | memory of the worker |\n|---|---|---|")
    for way, found in seconds.items():
        print(f"| {way} | {len(texts) / sum(found):.0f} | {memory[way] / MEGABYTE:.0f} MB |")
    ratios = [b / a for a, b in zip(*seconds.values(), strict=True)]
    print(f"ratio {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def drawn(count: int) -> list[str]:
    """Texts of mixed lengths, of words as frequent as in a language."""
    numbers = np.random.default_rng(1)
    lengths = np.clip(numbers.lognormal(np.log(20), 0.7, count), 1, 2 * LONGEST).astype(int)
    ranks = np.minimum(numbers.zipf(1.3, lengths.sum()), WORDS - 6)
    words = np.array([word(rank) for rank in range(WORDS)])[ranks]
    return [" ".join(one) for one in np.split(words, np.cumsum(lengths)[:-1])]


def word(rank: int) -> str:
    letters = "etaoinshrdlucmfw"
    return "".join(letters[int(digit, 16)] for digit in f"{rank:x}")


def write_tokenizer(path: Path) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*marks, *(word(rank) for rank in range(WORDS - len(marks)))]
    made = Tokenizer(
        models.WordPiece({one: place for place, one in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_truncation(LONGEST)
    made.enable_padding()
    made.save(str(path))


def function(model: Path, tokenizer: Path, threads: int, by_length: bool) -> Any:
    """predict_batch_udf around onnxruntime and tokenizers."""
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType

    def make() -> Any:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(str(model), options)
        encoder = Tokenizer.from_file(str(tokenizer))

        def vectors(texts: Any) -> Any:
            made = encoder.encode_batch(list(texts))
            ids = np.array([one.ids for one in made], np.int64)
            mask = np.array([one.attention_mask for one in made], np.int64)
            hidden = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
            weights = mask[:, :, None].astype(np.float32)
            return (hidden * weights).sum(1) / weights.sum(1)

        def predict(texts: Any) -> Any:
            if not by_length:
                return vectors(texts)
            order = np.argsort([len(one) for one in texts], kind="stable")
            found = np.empty((len(texts), 384), np.float32)
            for begin in range(0, len(texts), BATCH):
                places = order[begin : begin + BATCH]
                found[places] = vectors(texts[places])
            return found

        return predict

    batch = 10_000 if by_length else BATCH
    return predict_batch_udf(make, return_type=ArrayType(FloatType()), batch_size=batch)


def frame(session: Any, texts: list[str]) -> Any:
    data = session.createDataFrame([(one,) for one in texts], "text string").coalesce(1).cache()
    data.count()
    return data


def check(ours: Any, theirs: Any) -> None:
    one, other = (np.stack([np.asarray(row) for row in made["pooled"]]) for made in (ours, theirs))
    apart = float(np.abs(one - other).max() / np.abs(other).max())
    if apart > 1e-3:
        raise SystemExit(f"the embeddings differ by {apart:.1e}")


class Watch:
    """The most memory that a Python worker below this process has for itself."""

    def __enter__(self) -> Watch:
        self.most, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            self.most = max([self.most, *map(own_memory, workers())])


def workers() -> list[int]:
    """The processes that Spark's daemon has forked."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            parent = Path(f"/proc/{lines['PPid'].strip()}/cmdline").read_bytes()
        except OSError:
            continue
        if DAEMON in parent:
            found.append(int(lines["Pid"]))
    return found


def own_memory(worker: int) -> int:
    try:
        lines = Path(f"/proc/{worker}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


if __name__ == "__main__":
    main()
