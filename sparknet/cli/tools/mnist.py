"""convert_mnist_data and convert_mnist_siamese_data.

Caffe: examples/mnist/convert_mnist_data.cpp, examples/siamese/convert_mnist_siamese_data.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparknet.cli.convert_target import datums, write_database
from sparknet.cli.tools.tool import Flags, Tool, said

AT_ONCE = 256
SEED = 0


def _convert(words: list[str], flags: Flags) -> int:
    from sparknet.loaders import MNIST

    records = MNIST(*words[:2])
    said(f"A total of {len(records)} items.")
    count = write_database(words[2], flags["backend"], datums(records, words[2]))
    said(f"Processed {count} files.")
    return 0


def _convert_pairs(words: list[str], flags: Flags) -> int:
    count = write_database(words[2], "leveldb", _pairs(words[0], words[1]))
    said(f"Processed {count} files.")
    return 0


def _pairs(images: str, labels: str) -> Iterator[tuple[bytes, bytes]]:
    """Yields as many random pairs as there are images; label 1 means the same digit."""
    from sparknet.loaders import MNIST
    from sparknet.loaders.datums import datum_bytes

    records = MNIST(images, labels)
    said(f"A total of {len(records)} items.")
    drawn = np.random.default_rng(SEED).integers(0, len(records) or 1, (len(records), 2))
    for start in range(0, len(drawn), AT_ONCE):
        left, right = (records.take(one) for one in drawn[start : start + AT_ONCE].T)
        pairs = np.concatenate([left["data"], right["data"]], 1)
        same = left["label"] == right["label"]
        for number, (pair, alike) in enumerate(zip(pairs, same, strict=True), start):
            yield b"%08d" % number, datum_bytes(pair, int(alike))


CONVERT_MNIST_DATA = Tool(
    "convert_mnist_data", "IMAGE_FILE LABEL_FILE DB_NAME", _convert, {"backend": "lmdb"}
)
CONVERT_MNIST_SIAMESE_DATA = Tool(
    "convert_mnist_siamese_data", "IMAGE_FILE LABEL_FILE DB_NAME", _convert_pairs
)
