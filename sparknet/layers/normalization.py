"""BatchNorm, BN, LayerNorm, LRN, MVN and Normalize."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import constant, learnable
from sparknet.layers.layer import (
    MAX_COUNT,
    TEST,
    Layer,
    Param,
    Plan,
    Shape,
    between,
    count,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.layers.pooling import check_image
from sparknet.proto import caffe_pb2

STATISTICS = 3
"""The first blobs, which the forward pass computes."""


@layer("BatchNorm", stock=True)
class BatchNorm(Layer):
    """Normalisation by batch or running statistics; Scale follows it.

    Caffe: batch_norm_layer.cpp.  The blobs are running sums: mean, variance, and the factor that
    divides both.

    NVIDIA's ``scale_bias``, which scale_filler and bias_filler imply, adds two that learn: a
    factor and a shift for each channel.  Intel's ``filler``, and a bias_filler beside it, are read
    and not followed."""

    field = "batch_norm_param"
    accepts_int8 = True
    works_in_place = True
    statistics = slice(STATISTICS)
    plain_options = ("moving_average_fraction", "eps")

    def check_params(self, specs: Sequence[caffe_pb2.ParamSpec]) -> None:
        for index, spec in enumerate(specs[:STATISTICS]):
            if spec.lr_mult != 0:
                self.fail(
                    f"the statistics cannot be trained: param {index} must have lr_mult 0; "
                    f"it has {spec.lr_mult:g}"
                )

    @property
    def scales(self) -> bool:
        """Whether NVIDIA's factor and shift follow the statistics."""
        options = self.options
        if options.HasField("scale_filler") or options.scale_bias:
            return True
        return bool(options.HasField("bias_filler") and not options.HasField("filler"))

    def fixed(self, index: int) -> bool:
        return index < STATISTICS

    @property
    def by_running(self) -> bool:
        """Whether it normalises by the running statistics, not by the batch's."""
        is_set = self.options.HasField("use_global_stats")
        return bool(self.options.use_global_stats if is_set else self.phase == TEST)

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return not self.by_running

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        if len(bottom) < 2:
            self.fail(f"takes at least 2 axes (num, channels …); the input is {shape_text(bottom)}")
        options = self.options
        zero = constant(0)
        shapes = ((bottom[1],), (bottom[1],), (1,))
        params = tuple(learnable(self, shape, zero) for shape in shapes)
        if self.scales:
            slope = options.scale_filler if options.HasField("scale_filler") else constant(1)
            params += (learnable(self, shapes[0], slope),)
            params += (learnable(self, shapes[0], options.bias_filler),)
        values = {"use_global_stats": self.by_running}
        return Plan((bottom,), params, values)


_OF_SEGNET = ("scale_filler", "shift_filler", "bn_mode")
_OF_PSPNET = ("slope_filler", "bias_filler", "momentum", "eps", "frozen")


@layer("BN")
class BN(Layer):
    """bn_layer.cpp of two forks; their fields tell them apart.

    SegNet's and ENet's has two blobs, scale and shift.  ``bn_mode: LEARN`` takes the statistics of
    the batch in both phases (eps 1e-9; tops 1 and 2 show mean and variance), INFERENCE takes none.

    PSPNet's, ICNet's and TSN's has four: slope, bias, and running mean and variance.  Statistics
    are the batch's in TRAIN, the running ones in TEST and where ``frozen``, which also stops slope
    and bias from learning.  Two ``param`` entries are SegNet's and four this one's; without any it
    is this one in TEST, and in TRAIN refused unless ``dialect="segnet"`` or ``"pspnet"`` says
    which.  A ``batch_norm_param`` in place of ``bn_param`` gives
    scale_filler, bias_filler, moving_average_fraction as momentum, eps and use_global_stats."""

    field = "bn_param"
    fields = ("batch_norm_param",)
    tops = between(1, 3)
    works_in_place = True
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
        has_options = self.parameter.HasField("batch_norm_param") or len(self.parameter.param) in (
            2,
            4,
        )
        if has_options or any(map(self.options.HasField, (*_OF_SEGNET, *_OF_PSPNET))):
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
        extra_tops = ((1, bottom[1], 1, 1),) * (len(self.parameter.top) - 1)
        return Plan((bottom, *extra_tops), params, values)

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


@layer("LayerNorm")
class LayerNorm(Layer):
    """y = (x - mean) / sqrt(variance + eps) (Ba, Kiros and Hinton, 2016).

    The axes from ``axis`` on are normalised together.  It learns nothing: factors and shifts are a
    Scale's."""

    field = "layer_norm_param"
    plain_options = ("eps",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis = self.axis(self.options.axis, bottoms[0])
        return Plan((bottoms[0],), values={"axis": axis})


@layer("LRN", stock=True)
class LRN(Layer):
    """Local response normalisation, across channels or within one (Caffe: lrn_layer.cpp).

    Within a channel ``k`` is ignored."""

    field = "lrn_param"
    accepts_int8 = True
    plain_options = ("alpha", "beta", "k", "norm_region")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        size = options.local_size
        if size % 2 == 0 or size > MAX_COUNT:
            self.fail(f"local_size must be odd and below 2^31; it is {size}")
        bottom = check_image(self, bottoms[0])
        return Plan((bottom,), values={"local_size": size})

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        size: int = plan.values["local_size"]
        _, channels, high, wide = bottoms[0]
        across = plan.values["norm_region"] == "across_channels"
        window = min(size, channels) if across else min(size, high) * min(size, wide)
        return count(bottoms[0]) * window


@layer("MVN", stock=True)
class MVN(Layer):
    """Zero mean and, if asked, unit variance for each image or channel (Caffe: mvn_layer.cpp).

    The output always has 4 axes."""

    field = "mvn_param"
    works_in_place = True
    plain_options = ("across_channels", "normalize_variance", "eps")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        top = legacy_shape(self, bottoms[0], "the input")
        return Plan((top,))


@layer("Normalize")
class Normalize(Layer):
    """normalize_layer.cpp of SSD.  One factor if ``channel_shared``, else one a channel.

    ``learned_scale: false`` is happynear's and TSN's: no factor, and nothing is learned.  A layer
    that says nothing at all is refused in TRAIN, for each may be meant, and is SSD's in TEST."""

    field = "norm_param"
    plain_options = ("across_spatial", "channel_shared", "eps")

    def ambiguous(self, bottoms: Sequence[Shape]) -> str:
        if self.parameter.HasField("norm_param"):
            return ""
        return (
            "SSD's divides by the norm of the whole image and learns a factor (norm_param { "
            "across_spatial: true }), TSN's learns none (dialect=\"tsn\"), and happynear's divides "
            'at each place and learns none (dialect="happynear"): SSD\'s is taken'
        )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        options = self.options
        if len(bottom) < 2:
            self.fail(f"takes at least 2 axes (num, channels …); the input is {shape_text(bottom)}")
        legacy_shape(self, bottom, "the input")
        if not options.learned_scale and options.HasField("scale_filler"):
            self.fail("learned_scale: false has no factor, which scale_filler would fill")
        filler = options.scale_filler if options.HasField("scale_filler") else constant(1)
        shape = () if options.channel_shared else (bottom[1],)
        params = (learnable(self, shape, filler),) if options.learned_scale else ()
        return Plan((bottom,), params)
