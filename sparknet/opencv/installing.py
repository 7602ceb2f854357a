"""Puts sparknet's nets under cv2's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sparknet.opencv import constants, dnn
from sparknet.opencv.net import Net
from sparknet.opencv.reading import is_caffe

MODELS = ("Classification", "Detection", "Keypoints", "Segmentation", "TextRecognition")


def replacements(cv2: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield modules of cv2, names in them, and what stands there from now on."""
    yield cv2.dnn, "readNetFromCaffe", dnn.readNetFromCaffe
    yield cv2.dnn, "shrinkCaffeModel", dnn.shrinkCaffeModel
    yield cv2.dnn, "readNet", _either(dnn.readNet, cv2.dnn.readNet)
    for name in ("Model", *(f"{kind}Model" for kind in MODELS)):
        ours = _either(getattr(dnn, name), getattr(cv2.dnn, name))
        yield cv2.dnn, name, ours
        yield cv2, f"dnn_{name}", ours
    for name in ("registerLayer", "unregisterLayer"):
        yield cv2, f"dnn_{name}", _both(getattr(dnn, name), getattr(cv2, f"dnn_{name}"))
    for name, number in vars(constants).items():
        if name.startswith("DNN_") and not hasattr(cv2.dnn, name):
            yield cv2.dnn, name, number


def _either(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ours for Caffe's files and our nets, else theirs."""

    def call(*args: Any, **kwargs: Any) -> Any:
        words = [*args, *kwargs.values()]
        if words and (isinstance(words[0], Net) or _names_caffe(words)):
            return ours(*args, **kwargs)
        return theirs(*args, **kwargs)

    return call


def _names_caffe(words: list[Any]) -> bool:
    try:
        return is_caffe(*words[:3])
    except TypeError:  # one of OpenCV's own nets
        return False


def _both(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that tells OpenCV's own nets too."""

    def call(*args: Any) -> None:
        ours(*args)
        theirs(*args)

    return call
