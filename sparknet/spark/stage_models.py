"""The model of a saved stage or folder: a `SparkModel`, or a `ModuleModel`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparknet.errors import SparkError
from sparknet.net.model_folder import load_net, save_net
from sparknet.spark.model import SparkModel
from sparknet.spark.module_model import ModuleModel
from sparknet.training.modules.module_files import MODULE, SavedModule, write_state


def save_parts(model: SparkModel | ModuleModel, folder: Path) -> dict[str, Any]:
    """Write the files of a stage's model; returns what they do not hold."""
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
    return {**save_net(model.net, folder), "inputs": model.columns}


def load_parts(folder: Path, metadata: Mapping[str, Any], trusted: bool) -> Any:
    """The model that `save_parts` wrote."""
    if "module" in metadata:
        saved = SavedModule.read(metadata["module"], folder)
        return ModuleModel.read(folder / MODULE, str(folder), saved, None, trusted)
    return SparkModel(load_net(folder, metadata, trusted), columns=metadata["inputs"])
