"""BN: normalisation by channel with a slope and a bias, in the two forks that call it so."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import constant
from sparknet.layers.layer import TEST, Layer, Param, Plan, Shape, between, shape_text
from sparknet.layers.learnable import learnable
from sparknet.proto import caffe_pb2

_OF_SEGNET = ("scale_filler", "shift_filler", "bn_mode")
_OF_PSPNET = ("slope_filler", "bias_filler", "momentum", "eps", "frozen")


class BN(Layer):
    """bn_layer.cpp of two forks; their fields tell them apart.

    SegNet's and ENet's has two blobs, scale and shift.  ``bn_mode: LEARN`` takes the statistics of
    the batch in both phases (eps 1e-9; tops 1 and 2 show mean and variance), INFERENCE takes none.

    PSPNet's, ICNet's and TSN's has four: slope, bias, and running mean and variance.  Statistics
    are the batch's in TRAIN, the running ones in TEST and where ``frozen``, which also stops slope
    and bias from learning.  Two ``param`` entries are SegNet's and four this one's; without any it
    is this one in TEST, and in TRAIN refused unless ``dialect="segnet"`` or ``"pspnet"`` says
    which.  A ``batch_norm_param`` in place of ``bn_param`` gives
    scale_filler, bias_filler, moving_average_fraction as momentum, eps and use_global_stats.

    Values: statistics ("batch", "running", "none"), eps, momentum.
    """

    type = "BN"
    field = "bn_param"
    fields = ("batch_norm_param",)
    tops = between(1, 3)
    in_place = True
    statistics = slice(2, 4)

    def __init__(self, parameter: caffe_pb2.LayerParameter, phase: int) -> None:
        super().__init__(parameter, phase)
        segnet = [name for name in _OF_SEGNET if self.options.HasField(name)]
        pspnet = [name for name in _OF_PSPNET if self.options.HasField(name)]
        if segnet and pspnet:
            self.fail(f"{segnet[0]} is of SegNet's BN, {pspnet[0]} of PSPNet's: give those of one")
        plain = not pspnet and not parameter.HasField("batch_norm_param")
        self.of_segnet = bool(segnet) or (plain and len(parameter.param) == 2)
        if len(parameter.top) > 1 and not self.of_segnet:
            self.fail("takes 1 top; only SegNet's BN shows its statistics")

    def ambiguous(self, bottoms: Sequence[Shape]) -> str:
        told = self.parameter.HasField("batch_norm_param") or len(self.parameter.param) in (2, 4)
        if told or any(map(self.options.HasField, (*_OF_SEGNET, *_OF_PSPNET))):
            return ""
        return (
            "SegNet's takes the batch's statistics in both phases (bn_param { bn_mode: LEARN } or "
            'dialect="segnet"), PSPNet\'s keeps running ones (bn_param { frozen: false } or '
            'dialect="pspnet"): PSPNet\'s is taken'
        )

    @property
    def is_frozen(self) -> bool:
        """Whether PSPNet's layer keeps all of its blobs as they are."""
        return not self.of_segnet and bool(
            self.options.frozen or self.parameter.batch_norm_param.use_global_stats
        )

    def fixed(self, index: int) -> bool:
        return index > 1 or self.is_frozen

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return self._statistics() == "batch"

    def _statistics(self) -> str:
        if self.of_segnet:
            return "none" if self.choice("bn_mode") == "inference" else "batch"
        return "running" if self.phase == TEST or self.is_frozen else "batch"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        if len(bottom) < 2:
            self.fail(f"takes at least 2 axes (num, channels …); the input is {shape_text(bottom)}")
        shape = (1, bottom[1], 1, 1)
        slope, bias, momentum, eps = self._settings()
        params: tuple[Param, ...] = (learnable(self, shape, slope), learnable(self, shape, bias))
        if not self.of_segnet:
            params += (Param(shape, constant(0)), Param(shape, constant(float(self.is_frozen))))
        values = {"statistics": self._statistics(), "eps": eps, "momentum": momentum}
        shown = ((1, bottom[1], 1, 1),) * (len(self.parameter.top) - 1)
        return Plan((bottom, *shown), params, values)

    def _settings(
        self,
    ) -> tuple[caffe_pb2.FillerParameter, caffe_pb2.FillerParameter, float, float]:
        """Fillers of slope and bias, momentum and eps."""
        own, other = self.options, self.parameter.batch_norm_param
        if self.of_segnet:
            return own.scale_filler, own.shift_filler, 0.0, 1e-9
        if self.parameter.HasField("batch_norm_param"):
            slope = other.scale_filler if other.HasField("scale_filler") else constant(1)
            return slope, other.bias_filler, other.moving_average_fraction, other.eps
        return own.slope_filler, own.bias_filler, own.momentum, own.eps
