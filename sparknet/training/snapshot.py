"""Snapshots: all that a run needs to continue bit for bit, one file per worker and a manifest.

The manifest names the run and the digests of the files.  It is written last, and the store commits
all files at once.  A file holds JSON and arrays::

    8 bytes   SNSTATE1
    8 bytes   length of the JSON, little-endian
    JSON      {"numbers": …, "arrays": [[name, elements], …]}, and spaces up to a multiple of 64
    arrays    float32, little-endian, one after the other
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from sparknet.errors import FileError, shown
from sparknet.native import NDArray
from sparknet.training.comm import Comm
from sparknet.training.store import Buffer, Store
from sparknet.weights import LayerBlobs, Layout, WeightCollection

MAGIC = b"SNSTATE1"
FRONT = len(MAGIC) + 8
ALIGNED = 64
FORMAT = 1
MANIFEST = "manifest.json"
DIGEST = 32
FLOAT = np.dtype("<f4")

_DIGESTS = {"net": "net has layers that are", "data": "data has records that are"}
"""Parts of a run's identity that are digests, and how messages call them."""

Json = dict[str, Any]


@dataclass(frozen=True)
class SavedSnapshot:
    """A snapshot that was written."""

    round: int
    path: str
    bytes: int


@dataclass(frozen=True)
class Resumed:
    """The snapshot that a run continues from."""

    store: Store
    """The run's store."""
    round: int
    run: Json
    """The identity of the run that wrote it."""

    @property
    def path(self) -> str:
        return self.store.path(self.round)

    @property
    def seed(self) -> int:
        seed = self.run.get("seed")
        if type(seed) is not int:
            raise FileError(self.path, f"does not say the seed of its run: it says {seed!r}")
        return seed

    def check(self, mine: Mapping[str, Any]) -> None:
        """FileError if the snapshot does not fit to what is known of this run."""
        _check_run(self.path, self.run, mine)

    @classmethod
    def newest(cls, store: Store | None) -> Resumed | None:
        """The newest snapshot of a run, if there is one."""
        round = None if store is None else newest(store)
        if store is None or round is None:
            return None
        return cls(store, round, read_manifest(store, round)["run"])


def save(
    store: Store,
    comm: Comm,
    round: int,
    run: Mapping[str, Any],
    arrays: Mapping[str, NDArray],
    numbers: Json,
    layout: Layout | None = None,
) -> SavedSnapshot:
    """Write a snapshot together, each worker its own arrays and numbers.  ``run`` is its identity.

    ``layout`` is the layout of the weights, for readers of the weights alone.
    """
    if comm.rank == 0:
        store.begin(round)
    comm.barrier()  # nobody writes before the draft exists
    parts = list(_parts(numbers, arrays))
    store.put(round, file_name(comm.rank), parts)
    size = sum(len(part) for part in parts)
    files = comm.gather({"bytes": size, "digest": _digest(parts)})
    if comm.rank == 0:
        body = {"format": FORMAT, "round": round, "run": dict(run), "files": files}
        if layout is not None:
            body["layers"] = [asdict(layer) for layer in layout.layers]
        store.put(round, MANIFEST, [_sealed(body)])
        store.commit(round)
    comm.barrier()
    return SavedSnapshot(round, store.path(round), sum(int(one["bytes"]) for one in files))


def load(
    store: Store,
    comm: Comm,
    round: int,
    run: Mapping[str, Any],
    arrays: Mapping[str, NDArray],
    optional: Collection[str] = (),
) -> Json:
    """Copy a snapshot's arrays into ``arrays``, if all fit; returns its numbers.

    Arrays named in ``optional`` may be missing, there or here.
    """
    manifest = read_manifest(store, round)
    _check_run(store.path(round), manifest["run"], run)
    path = store.path(round, file_name(comm.rank))
    numbers, found = _read(store, round, manifest, comm.rank)
    for key in optional:
        if key not in found or key not in arrays:
            found.pop(key, None)
            arrays = {name: array for name, array in arrays.items() if name != key}
    sizes = {key: array.size for key, array in arrays.items()}
    if {key: len(values) for key, values in found.items()} != sizes:
        raise FileError(path, "is of another net or solver: its arrays are not those needed")
    for key, target in arrays.items():
        target.copy_from(NDArray.view(found[key]))
    return numbers


def model(store: Store, round: int) -> WeightCollection:
    """The weights that training would have returned at a snapshot."""
    manifest = read_manifest(store, round)
    numbers, found = _read(store, round, manifest, 0)
    if "layers" not in manifest or "model" not in numbers:
        fault = "does not say which weights are the model: an earlier version wrote it"
        raise FileError(store.path(round), f"{fault}; resume it and let it end")
    try:
        layers = tuple(
            LayerBlobs(
                one["name"], tuple(map(tuple, one["shapes"])), tuple(one["begins"]), one["type"]
            )
            for one in manifest["layers"]
        )
        return WeightCollection(Layout(layers), NDArray.view(found[numbers["model"]]))
    except (KeyError, TypeError, ValueError) as error:
        fault = f"has layers that do not fit its weights: {shown(error)}"
        raise FileError(store.path(round, MANIFEST), fault) from error


def _read(store: Store, round: int, manifest: Json, rank: int) -> tuple[Json, dict[str, Any]]:
    """The numbers and arrays of a worker; FileError if the file was changed."""
    name = file_name(rank)
    path, files = store.path(round, name), manifest["files"]
    if rank >= len(files):
        raise FileError(path, f"is not there: the manifest names the files of {len(files)}")
    expected = files[rank]
    data = memoryview(store.get(round, name))
    if len(data) != expected["bytes"]:
        fault = f"is cut short: {expected['bytes']} bytes written, {len(data)} there"
        raise FileError(path, f"{fault}; {_instead(store, round)}")
    if _digest([data]) != expected["digest"]:
        fault = "is damaged: its digest is not the one that was written down"
        raise FileError(path, f"{fault}; {_instead(store, round)}")
    return _parsed(path, data)


def _instead(store: Store, round: int) -> str:
    """Advice for when this snapshot cannot be resumed."""
    before = max((one for one in store.rounds() if one < round), default=None)
    if before is None:
        return f"delete {store.path(round)} to start again: there is none before"
    return f"delete {store.path(round)} to resume from {store.path(before)}"


def newest(store: Store) -> int | None:
    """The round of the newest snapshot."""
    return max(store.rounds(), default=None)


def prune(store: Store, keep: int) -> None:
    for round in store.rounds()[:-keep]:
        store.drop(round)


def read_manifest(store: Store, round: int) -> Json:
    """The manifest of a snapshot; FileError if it is damaged."""
    path = store.path(round, MANIFEST)
    try:
        manifest: Json = json.loads(bytes(store.get(round, MANIFEST)))
        seal = manifest.pop("digest")
        if manifest["format"] != FORMAT:
            raise FileError(path, f"has format {manifest['format']!r}; this version reads {FORMAT}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        fault = "is damaged, or no manifest of a snapshot"
        raise FileError(path, f"{fault}; {_instead(store, round)}") from error
    if seal != _digest([_canonical(manifest)]):
        raise FileError(path, f"is damaged: its digest does not fit; {_instead(store, round)}")
    if manifest.get("round") != round:
        raise FileError(path, f"is that of round {manifest.get('round')}")
    if not isinstance(manifest.get("run"), dict):
        raise FileError(path, "does not say what run it is of")
    if not _names_files(manifest.get("files")):
        raise FileError(path, "does not name the workers' files")
    return manifest


def _names_files(files: Any) -> bool:
    """Whether this lists sizes and digests, one for each worker."""
    return isinstance(files, list) and all(
        isinstance(one, dict) and type(one.get("bytes")) is int and "digest" in one for one in files
    )


def file_name(rank: int) -> str:
    return f"worker-{rank}.state"


def _parts(numbers: Json, arrays: Mapping[str, NDArray]) -> Iterator[Buffer]:
    listed = [[name, array.size] for name, array in arrays.items()]
    text = _canonical({"numbers": numbers, "arrays": listed})
    text += b" " * (-(FRONT + len(text)) % ALIGNED)
    yield MAGIC + len(text).to_bytes(8, "little") + text
    for array in arrays.values():
        yield np.asarray(array).astype(FLOAT, copy=False).data.cast("B")


def _parsed(path: str, data: memoryview) -> tuple[Json, dict[str, Any]]:
    """The numbers and arrays of a file whose digest is right; a foreign file can still fail."""
    try:
        if bytes(data[: len(MAGIC)]) != MAGIC:
            raise ValueError("it begins otherwise")
        end = FRONT + int.from_bytes(data[len(MAGIC) : FRONT], "little")
        header = json.loads(bytes(data[FRONT:end]))
        arrays = {}
        for name, size in header["arrays"]:
            arrays[name] = np.frombuffer(data[end : end + FLOAT.itemsize * size], FLOAT)
            end += FLOAT.itemsize * size
        return dict(header["numbers"]), arrays
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise FileError(path, f"is no worker's state: {error}") from error


def _check_run(path: str, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """FileError if a common part differs; parts that an earlier version left out are skipped."""
    for name in mine:
        if name in theirs and theirs[name] != mine[name]:
            raise FileError(path, f"is of another run: its {_told(name, theirs, mine)}")


def _told(name: str, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    """The difference, in words."""
    if name in _DIGESTS:
        return f"{_DIGESTS[name]} not those of this run"
    if name == "solver":
        ours, old = mine[name], theirs[name]
        field = next(field for field in {**old, **ours} if old.get(field) != ours.get(field))
        return f"solver's {_told(field, old, ours)}"
    return f"{name} is {theirs.get(name)!r}, not {mine.get(name)!r}"


def _sealed(body: Json) -> bytes:
    return _canonical({**body, "digest": _digest([_canonical(body)])})


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _digest(parts: list[Any]) -> str:
    total = blake2b(digest_size=DIGEST)
    for part in parts:
        total.update(part)
    return total.hexdigest()
