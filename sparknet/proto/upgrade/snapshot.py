"""The name of a solver's snapshots where its file gives none.

Caffe: upgrade_proto.cpp, UpgradeSnapshotPrefixProperty.
"""

from __future__ import annotations

from pathlib import Path

from sparknet.proto import caffe_pb2


def name_after(solver: caffe_pb2.SolverParameter, path: str) -> None:
    """Without a prefix, that of the solver's file; in a folder, the file's name."""
    file = Path(path)
    if not solver.HasField("snapshot_prefix"):
        solver.snapshot_prefix = str(file.with_suffix(""))
        return
    folder = Path(solver.snapshot_prefix)
    if _is_folder(folder):
        solver.snapshot_prefix = str(folder / file.stem)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file system can hold
        return False
