"""cv2.dnn's Caffe importer, which OpenCV 5 lacks; `install` puts it back into cv2."""

from __future__ import annotations

from typing import Any

from sparknet.errors import extra

__all__ = ["install", "uninstall"]

_before: list[tuple[Any, str, Any]] = []
"""cv2's modules, the names that `install` set there, and what they meant; None for nothing."""


def install() -> None:
    """Put readNetFromCaffe and what belongs to it back into cv2, where it lacks them."""
    with extra("opencv-python", "", "sparknet.opencv.install()"):
        import cv2

    if hasattr(cv2.dnn, "readNetFromCaffe"):
        return
    from sparknet.opencv.installing import replacements

    for module, name, value in list(replacements(cv2)):
        _before.append((module, name, getattr(module, name, None)))
        setattr(module, name, value)


def uninstall() -> None:
    """Give cv2 back what it had before `install`."""
    while _before:
        module, name, value = _before.pop()
        if value is None:
            delattr(module, name)
        else:
            setattr(module, name, value)
