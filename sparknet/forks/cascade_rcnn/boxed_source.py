"""The base of the sources that read Cascade R-CNN's window files."""

from __future__ import annotations

from typing import Any

from sparknet.forks.cascade_rcnn.readers.boxed_pictures import read_listed
from sparknet.layers.source_layer import SourceLayer


class BoxedSource(SourceLayer):
    """Its options have source, root_folder and batch_size."""

    fields = ("transform_param",)
    reads = batches = True
    facts = 3
    """Numbers of a box before its corners, in the window file."""

    @property
    def settings(self) -> Any:
        """The options that say how pictures are prepared."""
        return self.options

    @property
    def scale(self) -> float:
        """What pixels are multiplied by."""
        return float(self.parameter.transform_param.scale)

    def first(self) -> tuple[int, int, int]:
        """The shape of the first picture, as the window file says."""
        with self.reading(f"the window file '{self.options.source}'"):
            return read_listed(self.options.source, 1, self.facts)[0].shape

    def both(self, high: str, wide: str) -> tuple[int, int] | None:
        """Two options that go together; None where they are not given."""
        given = [self.settings.HasField(name) for name in (high, wide)]
        found = getattr(self.settings, high), getattr(self.settings, wide)
        if not all(given) and not any(found):
            return None
        if not all(given) or min(found) < 1:
            self.fail(f"needs {high} and {wide}, both positive; they are {found[0]}, {found[1]}")
        return found

    def source_values(self) -> dict[str, Any]:
        options, transform = self.options, self.parameter.transform_param
        if transform.HasField("mean_file") or transform.crop_size:
            self.fail("takes mean_value, not mean_file or crop_size, in transform_param")
        if len(transform.mean_value) not in (0, 1, 3):
            self.fail(f"needs one mean_value or three; there are {len(transform.mean_value)}")
        return {
            "source": options.source,
            "root_folder": options.root_folder,
            "batch_size": options.batch_size,
            "mean": tuple(transform.mean_value),
            "scale": self.scale,
        }
