"""cv2.dnn's names for Caffe's nets: ``from sparknet.opencv import dnn`` needs no OpenCV."""

from __future__ import annotations

from sparknet.opencv.boxes import (
    SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN,
    SOFT_NMSMETHOD_SOFTNMS_LINEAR,
    NMSBoxes,
    NMSBoxesBatched,
    NMSBoxesRotated,
    softNMSBoxes,
)
from sparknet.opencv.constants import *  # noqa: F403
from sparknet.opencv.image_models import (
    ClassificationModel,
    DetectionModel,
    KeypointsModel,
    SegmentationModel,
    TextRecognitionModel,
)
from sparknet.opencv.image_models import ImageModel as Model
from sparknet.opencv.images import (
    Image2BlobParams,
    blobFromImage,
    blobFromImages,
    blobFromImagesWithParams,
    blobFromImageWithParams,
    imagesFromBlob,
)
from sparknet.opencv.net import LayerInfo as Layer
from sparknet.opencv.net import Net
from sparknet.opencv.reading import readNet, readNetFromCaffe, shrinkCaffeModel
from sparknet.opencv.registered import registerLayer, unregisterLayer

__all__ = [
    "SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN",
    "SOFT_NMSMETHOD_SOFTNMS_LINEAR",
    "ClassificationModel",
    "DetectionModel",
    "Image2BlobParams",
    "KeypointsModel",
    "Layer",
    "Model",
    "NMSBoxes",
    "NMSBoxesBatched",
    "NMSBoxesRotated",
    "Net",
    "SegmentationModel",
    "TextRecognitionModel",
    "blobFromImage",
    "blobFromImageWithParams",
    "blobFromImages",
    "blobFromImagesWithParams",
    "imagesFromBlob",
    "readNet",
    "readNetFromCaffe",
    "registerLayer",
    "shrinkCaffeModel",
    "softNMSBoxes",
    "unregisterLayer",
]
