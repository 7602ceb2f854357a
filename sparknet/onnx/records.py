"""How many records there are, which a model may leave open.

It is read for two numbers that no size of it has: what differs between the two depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from sparknet.errors import FileError, shown
from sparknet.onnx.source import Array, Source
from sparknet.proto import Model

LARGE = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181)
MEDIUM = (29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, *LARGE)
SMALL = (3, 5, 7, 11, 13, 17, 19, 23)
_NUMBER = re.compile(r"[0-9]+")


def unlikely(source: Source, primes: Sequence[int], sizes_left: int = 1) -> list[list[int]]:
    """Up to three choices of numbers of which no size of the model is a multiple: of the records,
    and of the other sizes that are open."""
    sizes = {size for one in source.constants.values() for size in one.shape}
    sizes |= {size for shape in source.inputs.values() for size in shape if isinstance(size, int)}
    found = [one for one in primes if not any(size and size % one == 0 for size in sizes)]
    found = found if len(found) > sizes_left else list(primes[-sizes_left - 1 :])
    return [found[at : at + sizes_left] for at in range(min(3, len(found) - sizes_left + 1))]


def is_open(source: Source) -> bool:
    """Whether an input leaves open how many records it has."""
    return any(not isinstance(size, int) for sizes in source.inputs.values() for size in sizes)


def check_alike(path: str, one: Model, other: Model) -> None:
    """Refuse a model of which a layer differs with the number of records."""
    pairs = zip(one.net.layer, other.net.layer, one.arrays, other.arrays, strict=False)
    for layer, its, arrays, others in pairs:
        same = layer == its and len(arrays) == len(others)
        if same and all(_same(a, b) for a, b in zip(arrays, others, strict=True)):
            continue
        raise FileError(
            path,
            f"layer '{shown(layer.name)}' ({layer.type}): it computes with the number of records, "
            "which the model leaves open: give the input's whole shape",
        )
    if len(one.net.layer) != len(other.net.layer):
        raise FileError(path, "has other layers for another number of records: give its shape")


def _same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other, equal_nan=True)


def counted(path: str, failed: Sequence[tuple[int, FileError]]) -> FileError:
    """The first of two refusals; what depends on the number of records is in terms of N."""
    (records, error), *more = failed
    text = str(error).removeprefix(f"{path}: ")
    if not more:
        return FileError(path, re.sub(rf"\b{records}\b", "N", text))
    others, its = more[0][0], str(more[0][1]).removeprefix(f"{path}: ")
    if _NUMBER.sub("", text) != _NUMBER.sub("", its):
        return FileError(path, re.sub(rf"\b{records}\b", "N", text))
    said = _in_terms(_NUMBER.findall(text), _NUMBER.findall(its), records, others)
    return FileError(path, _NUMBER.sub(lambda _: next(said), text))


def _in_terms(ones: Sequence[str], others: Sequence[str], records: int, its: int) -> Iterator[str]:
    for one, other in zip(ones, others, strict=True):
        if one == other:
            yield one
            continue
        factor, rest = divmod(int(other) - int(one), its - records)
        more = int(one) - factor * records
        product = "N" if factor == 1 else f"{factor}N"
        yield "?" if rest else product if not more else f"{product}{more:+d}"
