"""convert_cifar_data.  Caffe: examples/cifar10/convert_cifar_data.cpp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sparknet.cli.convert_target import write_database
from sparknet.cli.tools.tool import Flags, Tool, said

BATCH = 10_000
"""Images in each of CIFAR-10's files."""


def _convert(words: list[str], flags: Flags) -> int:
    source, out, backend = words
    folder = Path(source)
    parts = {"train": [f"data_batch_{number}.bin" for number in range(1, 6)]}
    parts["test"] = ["test_batch.bin"]
    for part, names in parts.items():
        path = str(Path(out) / f"cifar10_{part}_{backend}")
        count = write_database(path, backend, _records([folder / name for name in names]))
        said(f"{path}: {count} images")
    return 0


def _records(files: Sequence[Path]) -> Iterator[tuple[bytes, bytes]]:
    from sparknet.loaders import CIFAR10, one_pass
    from sparknet.loaders.datums import datum_bytes

    for place, file in enumerate(files):
        number = place * BATCH
        for batch in one_pass(CIFAR10(str(file)), 256):
            for image, label in zip(batch["data"], batch["label"], strict=True):
                yield b"%05d" % number, datum_bytes(image, int(label))
                number += 1


CONVERT_CIFAR_DATA = Tool("convert_cifar_data", "INPUT_FOLDER OUTPUT_FOLDER DB_TYPE", _convert)
