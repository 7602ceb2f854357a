"""The files of detections that SSD's Caffe and Cascade R-CNN's write, and sparknet does not."""

from __future__ import annotations

from sparknet.errors import shown
from sparknet.layers.layer import Layer


def refuse_saving(layer: Layer) -> None:
    """Refuse a save_output_param by which the forks write files: one that names all three."""
    saving = layer.options.save_output_param
    if saving.output_directory and saving.label_map_file and saving.name_size_file:
        layer.fail(
            "save_output_param asks for files of detections in "
            f"'{shown(saving.output_directory)}', which sparknet does not write: leave out "
            "output_directory, and take the rows of the top"
        )
