"""cv2.dnn's models of images (OpenCV: modules/dnn/src/model.cpp)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.errors import SettingError, SpecError
from sparknet.opencv.constants import DNN_PMODE_CROP_CENTER, DNN_PMODE_NULL
from sparknet.opencv.images import Image2BlobParams, Scalar, blobFromImageWithParams
from sparknet.opencv.net import Net
from sparknet.opencv.reading import readNet
from sparknet.proto.blob_file import Array


class ImageModel:
    """A net that takes images as they come from cv2; cv2 calls it Model."""

    def __init__(self, model: Any, config: Any = "") -> None:
        """Take a net, or the names of its files."""
        self._net = model if isinstance(model, Net) else readNet(model, config)
        self._names = self._net.getUnconnectedOutLayersNames()
        shape = next(iter(self._net._shapes.values()), ())
        self._how = Image2BlobParams(size=shape[:1:-1] if len(shape) == 4 else (0, 0))

    def setInputParams(
        self,
        scale: Scalar = 1.0,
        size: Sequence[int] = (0, 0),
        mean: Scalar = (),
        swapRB: bool = False,
        crop: bool = False,
    ) -> None:
        self._how = Image2BlobParams(scale, tuple(size), mean, swapRB)
        self.setInputCrop(crop)

    def setInputSize(self, *size: Any) -> Any:
        self._how.size = size if len(size) > 1 else tuple(size[0])
        return self

    def setInputMean(self, mean: Scalar) -> Any:
        self._how.mean = mean
        return self

    def setInputScale(self, scale: Scalar) -> Any:
        self._how.scalefactor = scale
        return self

    def setInputCrop(self, crop: bool) -> Any:
        self._how.paddingmode = DNN_PMODE_CROP_CENTER if crop else DNN_PMODE_NULL
        return self

    def setInputSwapRB(self, swapRB: bool) -> Any:
        self._how.swapRB = swapRB
        return self

    def setOutputNames(self, outNames: Sequence[str]) -> Any:
        self._names = tuple(outNames)
        return self

    def setPreferableBackend(self, backendId: int) -> Any:
        self._net.setPreferableBackend(backendId)
        return self

    def setPreferableTarget(self, targetId: int) -> Any:
        self._net.setPreferableTarget(targetId)
        return self

    def enableWinograd(self, useWinograd: bool) -> Any:
        return self

    def predict(self, frame: Array, outs: Any = None) -> tuple[Array, ...]:
        """Return the net's outputs for an image."""
        if not all(self._how.size):
            raise SettingError("the model's input size is not known: call setInputSize")
        self._net.setInput(blobFromImageWithParams(frame, self._how))
        if self._has_im_info():
            width, height = self._how.size
            self._net.setInput(np.array([[height, width, 1.6]], np.float32), "im_info")
        outputs: tuple[Array, ...] = self._net.forward(self._names)
        return outputs

    def _has_im_info(self) -> bool:
        return "im_info" in self._net._network.inputs

    def _output(self, frame: Array) -> Array:
        outputs = self.predict(frame)
        if len(outputs) != 1:
            raise SpecError(f"the model takes a net with one output; this one has {self._names}")
        return outputs[0]


class ClassificationModel(ImageModel):
    """A net whose output is one score for each class."""

    _softmax = False

    def setEnableSoftmaxPostProcessing(self, enable: bool) -> ClassificationModel:
        self._softmax = enable
        return self

    def getEnableSoftmaxPostProcessing(self) -> bool:
        return self._softmax

    def classify(self, frame: Array) -> tuple[int, float]:
        """Return the best class and its score."""
        scores = self._output(frame).reshape(-1)
        if self._softmax:
            powers = np.exp(scores - scores.max())
            scores = powers / powers.sum()
        best = int(scores.argmax())
        return best, float(scores[best])


class SegmentationModel(ImageModel):
    """A net whose output is one score for each class and pixel."""

    def segment(self, frame: Array, mask: Any = None) -> Any:
        """Return each pixel's best class, at the output's size."""
        return self._output(frame)[0].argmax(axis=0).astype(np.uint8)


class KeypointsModel(ImageModel):
    """A net whose output is one map for each point of a body, or the points themselves."""

    def estimate(self, frame: Array, thresh: float = 0.5) -> Array:
        """Return x and y of each point; -1 where its map stays below the threshold."""
        output = self._output(frame)
        if output.ndim != 4:
            return np.array(output[0, :, :2])
        maps = output[0, :-1]  # the last one is the background
        height, width = maps.shape[1:]
        places = maps.reshape(len(maps), -1).argmax(axis=1)
        points = np.stack([places % width, places // width], axis=1).astype(np.float32)
        sides = np.array(frame.shape[1::-1], np.float32)
        points = np.multiply(points, sides / np.array([width, height], np.float32))
        points[maps.max(axis=(1, 2)) <= thresh] = -1
        return np.asarray(points)


class DetectionModel(ImageModel):
    """A net that ends in DetectionOutput."""

    _across_classes = False

    def setNmsAcrossClasses(self, value: bool) -> DetectionModel:
        """Accept: DetectionOutput suppresses boxes by itself."""
        self._across_classes = value
        return self

    def getNmsAcrossClasses(self) -> bool:
        return self._across_classes

    def detect(
        self,
        frame: Array,
        confThreshold: float = 0.5,
        nmsThreshold: float = 0.0,
    ) -> tuple[Any, Any, Any]:
        """Return classes, scores and boxes (x, y, width, height) in the image's pixels."""
        last = self._net._network.layers[-1]
        if last.type != "DetectionOutput":
            raise SpecError(f"detect() takes a net that ends in DetectionOutput, not {last.type}")
        rows = np.concatenate([output.reshape(-1, 7) for output in self.predict(frame)])
        rows = rows[~(rows[:, 2] < confThreshold)]
        if not len(rows):
            return (), (), ()
        size = self._how.size if self._has_im_info() else frame.shape[1::-1]
        sides = np.array(size, np.int32)
        corners, extents = _corners(rows[:, 3:])
        small = (extents <= 2).any(axis=1)
        scaled = rows[:, 3:] * np.tile(sides, 2).astype(np.float32)
        corners[small], extents[small] = (values[small] for values in _corners(scaled))
        corners = np.clip(corners, 0, sides - 1)
        extents = np.maximum(1, np.minimum(extents, sides - corners))
        return rows[:, 1].astype(np.int32), rows[:, 2].copy(), np.hstack([corners, extents])


def _corners(boxes: Array) -> tuple[Any, Any]:
    """Return left and top, and the width and height of whole pixels."""
    whole = boxes.astype(np.int32)
    return whole[:, :2], whole[:, 2:] - whole[:, :2] + 1


class TextRecognitionModel(ImageModel):
    """A net whose output is one score for each step and letter, after a blank."""

    _decode_type = ""
    _vocabulary: tuple[str, ...] = ()
    _beam = (10, 0)

    def setDecodeType(self, decodeType: str) -> TextRecognitionModel:
        self._decode_type = decodeType
        return self

    def getDecodeType(self) -> str:
        return self._decode_type

    def setVocabulary(self, vocabulary: Sequence[str]) -> TextRecognitionModel:
        self._vocabulary = tuple(vocabulary)
        return self

    def getVocabulary(self) -> tuple[str, ...]:
        return self._vocabulary

    def setDecodeOptsCTCPrefixBeamSearch(
        self,
        beamSize: int,
        vocPruneSize: int = 0,
    ) -> TextRecognitionModel:
        self._beam = (beamSize, vocPruneSize)
        return self

    def recognize(self, frame: Array, roiRects: Any = None) -> Any:
        """Return the text of an image, or of each of these rectangles of it."""
        if roiRects is None or not len(roiRects):
            text = self._decode(self._output(frame))
            return text if roiRects is None else (text,)
        parts = [frame[y : y + height, x : x + width] for x, y, width, height in roiRects]
        return tuple(self._decode(self._output(part)) for part in parts)

    def _decode(self, scores: Array) -> str:
        if not self._vocabulary:
            raise SettingError("the model has no letters yet: call setVocabulary")
        if self._decode_type == "CTC-greedy":
            letters = greedy(scores[:, 0])
        elif self._decode_type == "CTC-prefix-beam-search":
            letters = beam_search(scores[:, 0], *self._beam)
        else:
            raise SettingError(
                "setDecodeType takes 'CTC-greedy' or 'CTC-prefix-beam-search'; "
                f"it is {self._decode_type!r}"
            )
        return "".join(self._vocabulary[letter - 1] for letter in letters)


Prefix = tuple[int, ...]
Beam = dict[Prefix, list[float]]


def greedy(scores: Array) -> list[int]:
    """Return each step's best letter, without repetitions and blanks (letter 0)."""
    best = [int(letter) for letter in scores.argmax(axis=1)]
    pairs = zip([0, *best], best, strict=False)
    return [letter for before, letter in pairs if letter and letter != before]


def beam_search(scores: Array, beam_size: int, prune: int) -> list[int]:
    """Return the likeliest letters; scores are logarithms, and a step's best ``prune`` count."""
    beam: Beam = {(): [0.0, -np.inf]}  # of a prefix: ending in a blank, and in a letter
    for step in scores:
        tokens = np.argsort(-step, kind="stable")[: prune or None]
        longer: Beam = defaultdict(lambda: [-np.inf, -np.inf])
        for token in map(int, tokens):
            score = float(step[token])
            for prefix, (blank, letter) in beam.items():
                extended = (*prefix, token)
                either = np.logaddexp(blank, letter) + score
                if token == 0:
                    _add(longer[prefix], 0, either)
                elif prefix and token == prefix[-1]:
                    _add(longer[extended], 1, blank + score)
                    _add(longer[prefix], 1, letter + score)
                else:
                    _add(longer[extended], 1, either)
        ranked = sorted(longer.items(), key=lambda item: -np.logaddexp(item[1][0], item[1][1]))
        beam = dict(ranked[:beam_size])
    return list(next(iter(beam)))


def _add(entry: list[float], place: int, score: float) -> None:
    entry[place] = float(np.logaddexp(entry[place], score))
