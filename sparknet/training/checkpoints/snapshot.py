"""Snapshots: all that a run needs to continue bit for bit, one file per worker and a manifest.

The manifest names the run and the digests of the files.  It is written last, and the store commits
all files at once.  An array that several workers hold lies once in ``shared.state``; the others lie
in the files of their workers (`sparknet.training.checkpoints.store`).  So any number of workers can
continue: `load`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from sparknet.comm.collectives import Comm
from sparknet.comm.grid import bounds
from sparknet.comm.rpc import Refused
from sparknet.errors import FileError, clean
from sparknet.native import NDArray
from sparknet.training.checkpoints.store import (
    MANIFEST,
    StateFile,
    Store,
    Values,
    canonical,
    digest_of,
    floats,
    packed,
    parsed,
)
from sparknet.training.strategies import STRATEGIES
from sparknet.weights import LayerBlobs, Layout, WeightCollection

FORMAT = 2
READABLE = (1, FORMAT)
SHARED = "shared.state"

_DIGESTS = {
    "net": "net has layers that are",
    "module": "module has parts that are",
    "data": "data has records that are",
}
"""Parts of a run's identity that are digests, and how messages call them."""

Json = dict[str, Any]


@dataclass(frozen=True)
class SavedSnapshot:
    """A snapshot that was written."""

    round: int
    path: str
    bytes: int


@dataclass(frozen=True)
class Unsaved:
    """A snapshot that could not be written."""

    path: str
    worker: int
    """Who could not write."""
    error: str


FAULTS = (FileError, Refused)
"""What a store raises that fails: here, or at the driver."""


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
        """Return the newest snapshot of a run, if there is one."""
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
) -> SavedSnapshot | Unsaved:
    """Write a snapshot together, each worker its own arrays and numbers.  ``run`` is its identity.

    What is as on worker 0 is written by worker 0 alone.  ``layout`` is the layout of the weights,
    for readers of the weights alone.  Where the store fails, on any worker, all know, and no
    snapshot is there: what was written of it is a draft.
    """
    first = comm.rank == 0
    fault = _fault(partial(store.begin, round)) if first else ""
    digests = {name: digest_of([floats(array)]) for name, array in arrays.items()}
    reports = comm.gather([fault, *digests.values()])  # nobody writes before the draft exists
    if reports[0][0]:
        return Unsaved(store.path(round), 0, reports[0][0])
    shared = set(reports[0][1:]).intersection(set().union(*(one[1:] for one in reports[1:])))
    by_digest = {digest: arrays[name] for name, digest in digests.items()}
    own = {digest: one for digest, one in by_digest.items() if digest not in shared}
    files = {file_name(comm.rank): packed(numbers, digests, own)}
    if first and shared:
        earlier = {digest: one for digest, one in by_digest.items() if digest in shared}
        files[SHARED] = packed({}, {}, earlier)
    entries: Json = {}
    for name, (parts, digest) in files.items():
        fault = fault or _fault(partial(store.put, round, name, parts))
        entries[name] = {"bytes": sum(len(part) for part in parts), "digest": digest}
    all_entries: Json = {}
    for worker, (one, lacking) in enumerate(comm.gather([entries, fault])):
        if lacking:
            _forget(store, first)
            return Unsaved(store.path(round), worker, lacking)
        all_entries |= one
    if first:
        body = {"format": FORMAT, "round": round, "run": dict(run), "files": all_entries}
        if layout is not None:
            body["layers"] = [asdict(layer) for layer in layout.layers]
        sealed = [_sealed({**body, "workers": comm.size})]
        fault = _fault(partial(store.put, round, MANIFEST, sealed))
        fault = fault or _fault(partial(store.commit, round))
    if fault := comm.gather(fault)[0]:
        _forget(store, first)
        return Unsaved(store.path(round), 0, fault)
    size = sum(int(one["bytes"]) for one in all_entries.values())
    return SavedSnapshot(round, store.path(round), size)


def _fault(work: Callable[[], object]) -> str:
    """Return what is wrong with a store; empty if it does its work."""
    try:
        work()
    except FAULTS as error:
        return str(error)
    return ""


def _forget(store: Store, first: bool) -> None:
    """Remove what was written in vain, as far as the store can."""
    if first:
        _fault(store.clean)


class Saved:
    """A snapshot that is read."""

    def __init__(self, store: Store, round: int) -> None:
        self._store, self._round = store, round
        self.manifest = read_manifest(store, round)
        self.path = store.path(round)
        self.workers = int(self.manifest["workers"])
        """How many wrote it."""
        self.begun_with = self.manifest["run"].get("workers", self.workers)
        """How many the run began with, by whose steps its iterations count."""
        if type(self.begun_with) is not int or self.begun_with < 1:
            raise FileError(self.path, f"says that {self.begun_with!r} workers began its run")
        self._shared: dict[str, Values] | None = None

    def check(self, mine: Mapping[str, Any]) -> None:
        """FileError if it is of another run."""
        _check_run(self.path, self.manifest["run"], mine)

    def worker(self, rank: int, sliced: Collection[str] = ()) -> tuple[Json, dict[str, Values]]:
        """Return the numbers and arrays of a worker; FileError if its file was changed.

        Those named in ``sliced`` are its slices; earlier versions stored the whole buffers.
        """
        if rank >= self.workers:
            path = self._store.path(self._round, file_name(rank))
            raise FileError(path, f"is not there: the manifest names the files of {self.workers}")
        file = self._read(file_name(rank))
        arrays = {}
        for name, digest in file.arrays.items():
            if digest not in file.stored and self._shared is None:
                self._shared = self._read(SHARED).stored
            stored = file.stored if digest in file.stored else self._shared
            if stored is None or digest not in stored:
                path = self._store.path(self._round, file_name(rank))
                raise FileError(path, f"has no array '{name}', nor has {SHARED}")
            arrays[name] = stored[digest]
        size = len(arrays.get("weights", ()))
        begin, end = bounds(size, self.workers)[rank]
        for name in sliced:
            if len(arrays.get(name, ())) == size:
                arrays[name] = arrays[name][begin:end]
        return file.numbers, arrays

    def load(
        self,
        rank: int,
        arrays: Mapping[str, NDArray],
        sliced: Collection[str],
        optional: Collection[str],
    ) -> Json:
        """Copy a worker's arrays into ``arrays``, if all fit; returns its numbers.

        Arrays named in ``optional`` may be missing, there or here.
        """
        numbers, worker_arrays = self.worker(rank, sliced)
        for key in optional:
            if key not in worker_arrays or key not in arrays:
                worker_arrays.pop(key, None)
                arrays = {name: array for name, array in arrays.items() if name != key}
        self.check_sizes(rank, worker_arrays, {key: array.size for key, array in arrays.items()})
        for key, target in arrays.items():
            target.copy_from(NDArray.view(worker_arrays[key]))
        return numbers

    def check_sizes(self, rank: int, found: Mapping[str, Values], sizes: Mapping[str, int]) -> None:
        if {key: len(values) for key, values in found.items()} != sizes:
            path = self._store.path(self._round, file_name(rank))
            raise FileError(path, "is of another net or solver: its arrays are not those needed")

    def _read(self, name: str) -> StateFile:
        path, expected = self._store.path(self._round, name), self.manifest["files"].get(name)
        if expected is None:
            raise FileError(path, "is not there: the manifest does not name it")
        data = memoryview(self._store.get(self._round, name))
        if len(data) != expected["bytes"]:
            fault = f"is cut short: {expected['bytes']} bytes written, {len(data)} there"
            raise FileError(path, f"{fault}; {_instead(self._store, self._round)}")
        if (file := parsed(path, data, expected["digest"])) is None:
            fault = "is damaged: its digest is not the one that was written down"
            raise FileError(path, f"{fault}; {_instead(self._store, self._round)}")
        return file


def model(store: Store, round: int) -> WeightCollection:
    """Return the weights that training would have returned at a snapshot."""
    saved = Saved(store, round)
    manifest, (numbers, arrays) = saved.manifest, saved.worker(0)
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
        return WeightCollection(Layout(layers), NDArray.view(arrays[numbers["model"]]))
    except (KeyError, TypeError, ValueError) as error:
        fault = f"has layers that do not fit its weights: {clean(error)}"
        raise FileError(store.path(round, MANIFEST), fault) from error


def _instead(store: Store, round: int) -> str:
    """Advice for when this snapshot cannot be resumed."""
    before = max((one for one in store.rounds() if one < round), default=None)
    if before is None:
        return f"delete {store.path(round)} to start again: there is none before"
    return f"delete {store.path(round)} to resume from {store.path(before)}"


def newest(store: Store) -> int | None:
    """Return the round of the newest snapshot."""
    return max(store.rounds(), default=None)


def prune(store: Store, keep: int) -> str:
    """Drop all but the newest ones; returns why the store could not, if so."""

    def drop() -> None:
        for round in store.rounds()[:-keep]:
            store.drop(round)

    return _fault(drop)


def read_manifest(store: Store, round: int) -> Json:
    """Return the manifest of a snapshot; FileError if it is damaged."""
    path = store.path(round, MANIFEST)
    try:
        manifest: Json = json.loads(bytes(store.get(round, MANIFEST)))
        seal = manifest.pop("digest")
        if manifest["format"] not in READABLE:
            fault = f"has format {manifest['format']!r}; this version reads {FORMAT}"
            raise FileError(path, f"{fault} and those before")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        fault = "is damaged, or no manifest of a snapshot"
        raise FileError(path, f"{fault}; {_instead(store, round)}") from error
    if seal != digest_of([canonical(manifest)]):
        raise FileError(path, f"is damaged: its digest does not fit; {_instead(store, round)}")
    if manifest.get("round") != round:
        raise FileError(path, f"is that of round {manifest.get('round')}")
    if not isinstance(manifest.get("run"), dict):
        raise FileError(path, "does not say what run it is of")
    files, workers = manifest.get("files"), manifest.get("workers")
    if isinstance(files, list):  # an earlier version's, one for each worker
        workers = len(files)
        files = {file_name(rank): one for rank, one in enumerate(files)}
    if not _names_files(files) or type(workers) is not int:
        raise FileError(path, "does not name the workers' files")
    return {**manifest, "files": files, "workers": workers}


def _names_files(files: Any) -> bool:
    """Return whether this has sizes and digests by name."""
    return isinstance(files, dict) and all(
        isinstance(one, dict) and type(one.get("bytes")) is int and "digest" in one
        for one in files.values()
    )


def file_name(rank: int) -> str:
    return f"worker-{rank}.state"


def _check_run(path: str, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """FileError if a common part differs; parts that an earlier version left out are skipped."""
    for name in mine:
        if name == "strategy" and name in theirs:
            theirs = {**theirs, name: _with_defaults(theirs[name])}
        if name in theirs and theirs[name] != mine[name]:
            raise FileError(path, f"is of another run: its {_difference(name, theirs, mine)}")


def _with_defaults(settings: Any) -> Any:
    """Return a strategy's settings with those that an earlier version did not have."""
    kind = STRATEGIES.get(str(settings.get("name"))) if isinstance(settings, dict) else None
    return settings if kind is None else {**kind().settings(), **settings}


def _difference(name: str, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    """Return the difference, in words."""
    if name in _DIGESTS:
        return f"{_DIGESTS[name]} not those of this run"
    if name == "solver":
        ours, old = mine[name], theirs[name]
        field = next(field for field in {**old, **ours} if old.get(field) != ours.get(field))
        return f"solver's {_difference(field, old, ours)}"
    return f"{name} is {theirs.get(name)!r}, not {mine.get(name)!r}"


def _sealed(body: Json) -> bytes:
    return canonical({**body, "digest": digest_of([canonical(body)])})
