"""Names that mean something else in another fork, told apart by the caller.

Where fields tell forks apart (BN's `bn_mode`, `slope_filler`) no dialect is needed; where they do
not, a dialect writes down in the layers what its fork does without saying so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2

Layer = caffe_pb2.LayerParameter


class ForkWarning(UserWarning):
    """Two forks mean different things by a layer's text: which was taken, and how to say others."""


def _segnet(layer: Layer) -> None:
    """BN has scale and shift, and takes the statistics of the batch in both phases."""
    if layer.type == "BN" and not layer.bn_param.HasField("bn_mode"):
        layer.bn_param.bn_mode = caffe_pb2.BNParameter.LEARN


def _normalize(layer: Layer, across_spatial: bool, eps: float) -> None:
    """Normalize learns no factor."""
    if layer.type == "Normalize" and not layer.HasField("norm_param"):
        layer.norm_param.across_spatial = across_spatial
        layer.norm_param.eps = eps
        layer.norm_param.learned_scale = False


def _pspnet(layer: Layer) -> None:
    """BN has slope, bias and running statistics."""
    if layer.type == "BN" and not layer.bn_param.HasField("frozen"):
        layer.bn_param.frozen = False


def _hed(layer: Layer) -> None:
    """The loss of edges is balanced: there are few.  Crop aligns its bottoms."""
    if layer.type == "SigmoidCrossEntropyLoss":
        layer.loss_param.class_balanced = True
    elif layer.type == "Crop" and not layer.crop_param.offset and layer.crop_param.axis in (2, -2):
        layer.crop_param.align = True


def _textboxes(layer: Layer) -> None:
    """All default boxes lie again half a place lower."""
    if layer.type == "PriorBox":
        layer.prior_box_param.arrangement = caffe_pb2.PriorBoxParameter.TWO_ROWS


def _faceboxes(layer: Layer) -> None:
    """Small default boxes lie densely."""
    if layer.type == "PriorBox":
        layer.prior_box_param.arrangement = caffe_pb2.PriorBoxParameter.DENSE


def _happynear(layer: Layer) -> None:
    """Normalize divides at each place; BN is PSPNet's."""
    _normalize(layer, across_spatial=False, eps=1e-6)
    _pspnet(layer)


def _tsn(layer: Layer) -> None:
    """Normalize divides by the norm of a whole image; BN is PSPNet's."""
    _normalize(layer, across_spatial=True, eps=0)
    _pspnet(layer)


def _rfcn(layer: Layer) -> None:
    """SmoothL1Loss, of at most three bottoms, is what its SmoothL1LossOHEM is: it knows no sigma,
    and is divided by N x H x W or as loss_param says."""
    if layer.type == "SmoothL1Loss" and len(layer.bottom) < 4:
        layer.type = "SmoothL1LossOHEM"
        layer.ClearField("smooth_l1_loss_param")


DIALECTS: Mapping[str, Callable[[Layer], None]] = {
    "segnet": _segnet,
    "pspnet": _pspnet,
    "hed": _hed,
    "textboxes": _textboxes,
    "faceboxes": _faceboxes,
    "happynear": _happynear,
    "tsn": _tsn,
    "rfcn": _rfcn,
}


def in_dialect(net: caffe_pb2.NetParameter, dialect: str | None) -> caffe_pb2.NetParameter:
    """The net, of the current generation, with the meaning of a fork written down in place."""
    if dialect is None:
        return net
    if dialect not in DIALECTS:
        raise SpecError(f"unknown dialect '{dialect}': it is one of {', '.join(DIALECTS)}")
    for layer in net.layer:
        DIALECTS[dialect](layer)
    return net
