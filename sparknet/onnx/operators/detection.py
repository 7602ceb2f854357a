"""SSD detections: the nodes that `write_model` puts around NonMaxSuppression, as one layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sparknet.onnx.limits import bounded
from sparknet.onnx.operators.shapes import permute
from sparknet.onnx.source import Array, OnnxNode
from sparknet.onnx.step import Outputs, Step, reads

OP = "sparknet.Detections"
_ROWS = [1, 1, -1, 7]


class DetectionSearch:
    """Looks for a Reshape of rows of image, label, score and box, and for all that it needs."""

    def __init__(self, makers: Mapping[str, OnnxNode], constants: Mapping[str, Array]) -> None:
        self.makers, self.constants = makers, constants

    def detection(self, end: OnnxNode) -> OnnxNode | None:
        """Return a node in place of the last one."""
        if end.op != "Reshape" or self._numbers(end.inputs[1]) != _ROWS:
            return None
        rows = self._maker(end.inputs[0], "Concat")
        if rows is None or len(rows.inputs) != 4:
            return None
        columns = [self._inside(name, "Unsqueeze") for name in rows.inputs[:3]]
        gather = self._maker(rows.inputs[3], "Gather")
        label = self._inside(columns[1], "Cast")
        if gather is None or columns[0] is None:
            return None
        number, score, keep = gather.inputs[1], columns[2], -1
        suppressed = [self._gathered(name) for name in (label, number, score)]
        if all(suppressed):
            (label, place), (number, others), (score, last) = suppressed  # type: ignore[misc]
            most = self._most(place) if place == others == last else None
            if most is None:
                return None
            keep = most
        return self._whole(end, label, number, score, gather.inputs[0], keep)

    def _whole(
        self,
        end: OnnxNode,
        label: str | None,
        number: str,
        score: str | None,
        boxes: str,
        keep: int,
    ) -> OnnxNode | None:
        columns = [self._column(label, 1), self._column(number, 2)]
        suppressing = self._maker(columns[0], "NonMaxSuppression")
        scores = self._maker(score, "Gather")
        flat = self._inside(scores.inputs[0], "Reshape") if scores is not None else None
        at = self._maker(scores.inputs[1], "Add") if scores is not None else None
        is_complete = suppressing is not None and len(suppressing.inputs) == 5 and at is not None
        if not is_complete or columns[0] != columns[1] or flat != suppressing.inputs[1]:  # type: ignore[union-attr]
            return None
        assert suppressing is not None
        if self._inside(boxes, "Squeeze") != suppressing.inputs[0]:
            return None
        overlap, least = (self._numbers(name) for name in suppressing.inputs[3:])
        if not overlap or not least:
            return None
        detection = OnnxNode(OP, end.name, list(suppressing.inputs[:2]), list(end.outputs))
        detection.attributes = {"overlap": overlap[0], "least": least[0], "keep": keep}
        return detection

    def _gathered(self, name: str | None) -> tuple[str, str] | None:
        """Return what a choice of the best takes, and its places."""
        gather = self._maker(name, "Gather")
        if gather is None or gather.attributes.get("axis", 0) != 0:
            return None
        return gather.inputs[0], gather.inputs[1]

    def _most(self, places: str) -> int | None:
        """Return how many rows stay: the end of a Slice, or a TopK's count in older files."""
        node = self._maker(places, "Slice") or self._maker(places, "TopK")
        count = self._maker(node.inputs[2 if node.op == "Slice" else 1], "Min") if node else None
        numbers = [self._numbers(name) for name in count.inputs] if count is not None else []
        counts = [one[0] for one in numbers if one]
        return int(counts[0]) if len(counts) == 1 else None

    def _column(self, name: str | None, place: int) -> str | None:
        gather = self._maker(name, "Gather")
        if gather is None or gather.attributes.get("axis", 0) != 1:
            return None
        return gather.inputs[0] if self._numbers(gather.inputs[1]) == [place] else None

    def _inside(self, name: str | None, op: str) -> str | None:
        node = self._maker(name, op)
        return None if node is None else node.inputs[0]

    def _maker(self, name: str | None, op: str) -> OnnxNode | None:
        maker = self.makers.get(name or "")
        return maker if maker is not None and maker.op == op and len(maker.inputs) > 0 else None

    def _numbers(self, name: str) -> list[float] | None:
        value = self.constants.get(name)
        return None if value is None or value.size > 8 else np.ravel(value).tolist()


@reads(OP)
def detections(step: Step) -> Outputs:
    """Take whole boxes for offsets to prior boxes of 0."""
    boxes, scores = step.blob(0), step.plain(permute(step.value(1), (0, 2, 1)))
    if len(boxes.shape) != 3 or boxes.shape[0] != 1 or boxes.shape[2] != 4:
        step.refuse(f"boxes of the shape {list(boxes.shape)}: they are read for one image")
    count, classes = boxes.shape[1], scores.shape[2]
    zeros = np.zeros(bounded((1, 2, 4 * count)), np.float32)
    priors = step.layer("Parameter", [], [zeros], part="priors", shape={"dim": [1, 2, 4 * count]})
    return step.layer(
        "DetectionOutput",
        [
            step.reshape(boxes, (1, 4 * count), part="boxes"),
            step.reshape(scores, (1, count * classes), part="scores"),
            priors,
        ],
        num_classes=classes,
        background_label_id=-1,
        nms_param={"nms_threshold": step.attribute("overlap"), "top_k": -1},
        keep_top_k=step.attribute("keep"),
        code_type="CORNER",
        variance_encoded_in_target=True,
        confidence_threshold=step.attribute("least"),
    )
