"""A model as files: net.prototxt, weights.caffemodel, and the files that the net names."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparknet.dist.portable import Portable, portable_net
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.scratch import scratch_folder
from sparknet.proto import parse_net
from sparknet.proto.trust import mark
from sparknet.spark.model import SparkModel

NET, WEIGHTS = "net.prototxt", "weights.caffemodel"


def save_model(model: SparkModel, folder: Path) -> dict[str, Any]:
    """Write the files; returns what they do not hold."""
    whole = portable_net(model.net.tested.described)
    (folder / NET).write_text(whole.text, encoding="utf-8")
    for name, data in whole.files.items():
        (folder / name).write_bytes(data)
    model.net.get_weights().save(folder / WEIGHTS)
    return {
        "data": sorted(whole.files),
        "inputs": model.columns,
        "precision": model.net.precision,
        "preprocessing": as_json(model.net.preprocessing),
    }


def load_model(folder: Path, metadata: dict[str, Any], trusted: bool) -> SparkModel:
    files = {name: (folder / name).read_bytes() for name in metadata["data"]}
    text = Portable((folder / NET).read_text(encoding="utf-8"), files).unpacked(kept_folder())
    net = parse_net(text)
    if not trusted:
        mark(net, False)
        for layer in net.layer:  # these read only what was saved with the net
            if any(name in str(layer) for name in files):
                layer.ClearField("untrusted")
    made = Net(
        net,
        folder / WEIGHTS,
        precision=metadata["precision"],
        preprocessing=of_json(metadata["preprocessing"]),
    )
    _ = made.net  # reads the files, which go
    return SparkModel(made, columns=metadata["inputs"])


def as_json(how: Preprocessing | None) -> Any:
    return None if how is None else json.loads(how.to_json())


def of_json(said: Any) -> Preprocessing | None:
    return None if said is None else Preprocessing.from_json(json.dumps(said))


def kept_folder() -> Path:
    """A folder for files that nets name, which stays until the process ends."""
    return Path(_kept().name)


@cache
def _kept() -> TemporaryDirectory[str]:
    return scratch_folder("nets")
