"""A model as files: net.prototxt, weights.caffemodel, and the files that the net names; or of a
module of PyTorch module.safetensors."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparknet.errors import SparkError
from sparknet.layers import LAYERS
from sparknet.layers.infogain_loss import InfogainLoss
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.scratch import scratch_folder
from sparknet.proto import caffe_pb2, parse_net
from sparknet.proto.untrusted import mark
from sparknet.spark.model import SparkModel
from sparknet.spark.module_model import ModuleModel
from sparknet.training.modules.module_files import SavedModule, write_state
from sparknet.training.portable import Portable, portable_net

NetParameter = caffe_pb2.NetParameter

NET, WEIGHTS = "net.prototxt", "weights.caffemodel"
MODULE = "module.safetensors"
_OWN = re.compile(r"sparknet-file-[0-9a-f]{32}")
"""The names that `Portable` gives to files."""


def save_model(model: SparkModel | ModuleModel, folder: Path) -> dict[str, Any]:
    """Write the files; returns what they do not hold."""
    if isinstance(model, ModuleModel):
        saved = model.saved()
        if saved.made_by is None:
            raise SparkError(
                f"nothing names what makes module '{saved.name}' as it is, and a saved stage is "
                "loaded by that name: give module= a class without arguments, a function or a "
                "functools.partial of one, from a file that Python can import"
            )
        write_state(folder / MODULE, model.module)
        return {"module": saved.said()}
    whole = portable_net(model.net.tested.described)
    (folder / NET).write_text(whole.text, encoding="utf-8")
    for name, data in whole.files.items():
        (folder / name).write_bytes(data)
    weights = model.net.get_weights()
    if weights.flat.size:
        weights.save(folder / WEIGHTS)
    return {
        "data": sorted(whole.files),
        "inputs": model.columns,
        "precision": model.net.precision,
        "preprocessing": as_json(model.net.preprocessing),
    }


def load_model(folder: Path, metadata: dict[str, Any], trusted: bool) -> Any:
    """The `SparkModel` or `ModuleModel` of a folder."""
    if "module" in metadata:
        saved = SavedModule.read(metadata["module"], folder)
        return ModuleModel.read(folder / MODULE, str(folder), saved, None, trusted)
    text, own = unpacked(folder, NET, metadata["data"])
    net = parse_net(text)
    if not trusted:
        distrust(net, own)
    made = Net(
        net,
        folder / WEIGHTS if (folder / WEIGHTS).exists() else None,
        precision=metadata["precision"],
        preprocessing=of_json(metadata["preprocessing"]),
    )
    _ = made.net  # reads the files, which go
    return SparkModel(made, columns=metadata["inputs"])


def unpacked(folder: Path, name: str, data: Any) -> tuple[str, set[str]]:
    """The prototxt of this name, with the paths of the files that it names, and these paths."""
    if not isinstance(data, list) or not all(_OWN.fullmatch(file) for file in data):
        raise ValueError(f"the net's files are {data!r}")
    kept = kept_folder()
    files = {file: (folder / file).read_bytes() for file in data}
    text = Portable((folder / name).read_text(encoding="utf-8"), files).unpacked(kept)
    return text, {str(kept / file) for file in files}


def distrust(net: NetParameter, own: Collection[str]) -> None:
    """Let a net read nothing but its own files, and neither write nor import anything."""
    mark(net, False)
    for layer in net.layer:
        kind = LAYERS.get(layer.type)
        if kind is InfogainLoss and layer.infogain_loss_param.source in own:
            layer.ClearField("untrusted")
        elif (
            kind is not None
            and issubclass(kind, SourceLayer)
            and kind.field is not None
            and layer.transform_param.mean_file in own
        ):
            options = getattr(layer, kind.field)
            if "source" in options.DESCRIPTOR.fields_by_name:
                options.ClearField("source")
            layer.ClearField("untrusted")


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
