"""Losses of distances: ContrastiveLoss, TripletLoss, MMDLoss, CenterLoss; InnerDistance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.layers.fillers import learnable
from sparknet.layers.host import (
    Blobs,
    DrawingHost,
    Host,
    HostNode,
    class_numbers,
    put_slopes,
    rows_of,
)
from sparknet.layers.layer import (
    INTERPRETED,
    Layer,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.layers.losses import Loss, check_one_label_each


@layer("ContrastiveLoss", stock=True)
class ContrastiveLoss(Loss):
    """Two batches of features and a same-or-not label (Caffe: contrastive_loss_layer.cpp)."""

    other_bottoms = "indices"
    field = "contrastive_loss_param"
    bottoms = exactly(3)
    plain_options = ("margin", "legacy_version")
    bottoms_without_gradient = (2,)

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        one, two, same = bottoms
        shapes = [legacy_shape(self, shape, "features") for shape in (one, two)]
        if shapes[0][1] != shapes[1][1] or any(s[2:] != (1, 1) for s in shapes):
            self.fail(
                "the features must be two batches of vectors of one length; "
                f"their shapes are {shape_text(one)} and {shape_text(two)}"
            )
        check_one_label_each(self, same)
        if count(same) != one[0]:
            self.fail(f"{one[0]} pairs need as many labels; there are {count(same)}")
        return {"num": one[0], "channels": shapes[0][1]}


class TripletLossHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        a, p, n = (rows_of(bottom.data) for bottom in bottoms)
        far = self.node.plan.values["margin"] + ((a - p) ** 2).sum(1) - ((a - n) ** 2).sum(1)
        self.learns = (far > 0)[:, None]
        tops[0].data[...] = np.maximum(far, 0).sum(dtype=np.float64) / 2 / max(len(a), 1)

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        a, p, n = (rows_of(bottom.data) for bottom in bottoms)
        scale = self.learns * np.float32(float(tops[0].diff) / max(len(a), 1))
        put_slopes(bottoms, [slope * scale for slope in (n - p, p - a, a - n)], propagate_down)


@layer("TripletLoss")
class TripletLoss(Loss):
    """triplet_loss_layer.cpp of several forks; bottoms: anchors, positives and negatives (N x C).

    Half the mean of max(0, margin + |a - p|^2 - |a - n|^2)."""

    host = TripletLossHost
    field = "triplet_loss_param"
    bottoms = exactly(3)
    plain_options = ("margin",)
    bottoms_without_gradient = ()

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        if len(set(bottoms)) > 1:
            shapes = ", ".join(map(shape_text, bottoms))
            self.fail(f"the three bottoms must be alike; they are {shapes}")
        return {}


Array = np.ndarray[Any, Any]


class MMDLossHost(DrawingHost):
    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.gamma: float | None = None
        self.slopes: list[Array] = []

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        domains = [rows_of(bottom.data).astype(np.float64) for bottom in bottoms]
        self.slopes = [np.zeros_like(domain) for domain in domains]
        loss = 0.0
        if min(map(len, domains)) > 1:
            widths = self._widths(np.concatenate(domains))
            many = max(map(len, domains))
            (s1, s2), (t1, t2) = (self._pairs(len(domain), many) for domain in domains)
            for one, other, sign in (
                ((0, s1), (0, s2), 1.0),
                ((1, t1), (1, t2), 1.0),
                ((0, s1), (1, t2), -1.0),
                ((1, t1), (0, s2), -1.0),
            ):
                away = domains[one[0]][one[1]] - domains[other[0]][other[1]]
                kernels = np.exp(-widths * (away**2).sum(1, keepdims=True))
                loss += sign * float(kernels.sum())
                slope = -2 * sign / many * (kernels * widths).sum(1, keepdims=True) * away
                np.add.at(self.slopes[one[0]], one[1], slope)
                np.subtract.at(self.slopes[other[0]], other[1], slope)
        tops[0].data[...] = loss

    def _widths(self, rows: Array) -> Array:
        """Return the factors of squared distances, one for each kernel."""
        values = self.node.plan.values
        if self.gamma is None or not values["fixed"]:
            squares = (rows**2).sum(1)
            all_pairs = 2 * (len(rows) * squares.sum() - (rows.sum(0) ** 2).sum())
            self.gamma = float(len(rows) * (len(rows) - 1) / all_pairs) if all_pairs > 0 else 0.0
        powers = np.arange(values["kernels"]) - values["kernels"] // 2
        return np.asarray(self.gamma * values["factor"] ** powers.astype(np.float64))

    def _pairs(self, records: int, many: int) -> tuple[Array, Array]:
        """Pairs of different records."""
        first, second = self.rng.integers(0, records, (2, many))
        return first, np.where(first == second, (second + 1) % records, second)

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        weight = float(tops[0].diff)
        put_slopes(bottoms, [slope * weight for slope in self.slopes], propagate_down)


MOST_KERNELS = 64


@layer("MMDLoss")
class MMDLoss(Loss):
    """mmd_layer.cu of thuml/transfer-caffe (Long et al., Learning Transferable Features with Deep
    Adaptation Networks): the maximum mean discrepancy of bottom 0's records and bottom 1's.

    As many pairs of records are drawn as the larger bottom has, and their Gaussian kernels summed,
    of kernel_num widths: each kernel_mul times the one before, around the mean squared distance,
    which fix_gamma keeps from the first pass on.  As there, the loss is the sum over the pairs, and
    the gradient that of their mean, with the widths held fixed; here it is that of the same pairs.
    Without two records of each domain there is no loss."""

    host = MMDLossHost
    field = "mmd_param"
    mixes_records = True
    bottoms_without_gradient = ()

    @property
    def draws(self) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        one, two = bottoms
        if not one or not two or count(one[1:]) != count(two[1:]):
            self.fail(
                "needs two bottoms of records of one size; they are "
                f"{shape_text(one)} and {shape_text(two)}"
            )
        options = self.options
        if not 1 <= options.kernel_num <= MOST_KERNELS or not 0 < options.kernel_mul <= 1000:
            self.fail(
                f"needs a kernel_num of 1 to {MOST_KERNELS} and a kernel_mul above 0, at most "
                f"1000; they are {options.kernel_num} and {options.kernel_mul:g}"
            )
        values = {
            "kernels": options.kernel_num,
            "factor": options.kernel_mul,
            "fixed": options.fix_gamma,
        }
        return Plan(((),), values=values)


class CenterLossHost(Host):
    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.away, self.labels = np.zeros((0, 0), np.float32), np.zeros(0, np.int64)

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        self.labels = class_numbers(self.node, bottoms[1].data, values["classes"])
        features = rows_of(bottoms[0].data)
        self.away = features - self.params[0].data[self.labels]
        far = np.abs(self.away) if values["norm"] == "L1" else self.away**2 / 2
        tops[0].data[...] = far.sum(dtype=np.float64) / max(len(features), 1)

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        slope = np.sign(self.away) if self.node.plan.values["norm"] == "L1" else self.away
        counts = np.bincount(self.labels, minlength=len(self.params[0].data))
        shares = slope / (counts[self.labels] + 1).astype(np.float32)[:, None]
        np.subtract.at(self.params[0].diff, self.labels, shares)
        if propagate_down[0]:
            weight = np.float32(float(tops[0].diff) / max(len(slope), 1))
            bottoms[0].diff[...] = (slope * weight).reshape(bottoms[0].shape)


@layer("CenterLoss")
class CenterLoss(Loss):
    """center_loss_layer.cpp of caffe-face (Wen et al., A Discriminative Feature Learning Approach
    for Deep Face Recognition); num_output is the number of classes.

    The loss is half the mean squared distance, or with distance_type L1 the mean of absolute
    differences.  As there, what a centre learns is the mean distance of its features, one more
    counted than there are, whatever the loss weight."""

    host = CenterLossHost
    field = "center_loss_param"
    other_bottoms = "indices"
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        check_one_label_each(self, bottoms[1])
        options = self.options
        if options.num_output < 1:
            self.fail(f"num_output must be positive; it is {options.num_output}")
        if options.distance_type not in ("L1", "L2"):
            self.fail(f"distance_type '{options.distance_type}' must be L1 or L2")
        if self.axis(options.axis, bottoms[0]) != 1:
            self.fail(f"axis must be 1; it is {options.axis}")
        centres = learnable(
            self, (options.num_output, count(bottoms[0][1:])), options.center_filler
        )
        values = {"classes": options.num_output, "norm": options.distance_type}
        return Plan(((),), (centres,), values)


class InnerDistanceHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        if values["normalize"]:
            weights = self.params[0].data
            weights /= np.sqrt((weights**2).sum(1, keepdims=True) + 1e-6)
        vectors, rows = self._both(bottoms)
        out = np.zeros((len(vectors), len(rows)), np.float32)
        for place, row in enumerate(rows):
            away = vectors - row
            out[:, place] = (np.abs(away) if values["norm"] == "L1" else away**2).sum(1)
        tops[0].data[...] = out.reshape(tops[0].shape)

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        values = self.node.plan.values
        vectors, rows = self._both(bottoms)
        diff = tops[0].diff.reshape(len(vectors), len(rows))
        counted = np.ones_like(diff)
        if values["labels"]:
            labels = class_numbers(self.node, bottoms[-1].data, len(rows))
            counted = (labels[:, None] == np.arange(len(rows))).astype(np.float32)
        to_vectors, to_rows = np.zeros_like(vectors), np.zeros_like(rows)
        for place, row in enumerate(rows):
            away = vectors - row
            slope = np.sign(away) if values["norm"] == "L1" else 2 * away
            slope = slope * diff[:, place : place + 1]
            to_vectors += slope
            to_rows[place] = -(slope * counted[:, place : place + 1]).sum(0)
        if propagate_down[0]:
            bottoms[0].diff[...] = to_vectors.reshape(bottoms[0].shape)
        if values["own"]:
            self.params[0].diff[...] += to_rows
        elif propagate_down[1]:
            bottoms[1].diff[...] = to_rows.reshape(bottoms[1].shape)

    def _both(self, bottoms: Blobs) -> tuple[Array, Array]:
        axis = self.node.plan.values["axis"]
        shape = bottoms[0].data.shape
        lead = int(np.prod(shape[:axis], dtype=np.int64))
        vectors = bottoms[0].data.reshape(lead, int(np.prod(shape[axis:], dtype=np.int64)))
        own = self.node.plan.values["own"]
        rows = self.params[0].data if own else bottoms[1].data
        return vectors, rows.reshape(len(rows), vectors.shape[1])


@layer("InnerDistance")
class InnerDistance(Layer):
    """inner_distance_layer.cpp of happynear's fork; as InnerProduct, with sums of squared
    (distance_type L2) or absolute (L1) differences in place of products, and no bias.

    A second bottom takes the place of the weights.  With update_center_only the last bottom holds
    class numbers, and a row learns from the vectors of its class alone.  ``normalize`` gives every
    row length 1 in each forward pass, in the blob itself."""

    host = InnerDistanceHost
    field = "inner_distance_param"
    bottoms = between(1, 3)

    def force_backward(self, bottom: int) -> bool:
        return bottom < (2 if not self.options.update_center_only else self._rows)

    @property
    def _rows(self) -> int:
        """Bottoms that hold vectors."""
        return len(self.parameter.bottom) - int(self.options.update_center_only)

    def takes(self, bottom: int) -> str:
        return "numbers" if bottom < self._rows else "indices"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.transpose:
            self.fail("transpose is not supported: rows are vectors")
        if options.distance_type not in ("L1", "L2"):
            self.fail(f"distance_type '{options.distance_type}' must be L1 or L2")
        if not 1 <= self._rows <= 2:
            self.fail("takes vectors, rows, and with update_center_only class numbers")
        axis = self.axis(options.axis, bottoms[0])
        length, own = count(bottoms[0][axis:]), self._rows == 1
        outputs = options.num_output if own else (*bottoms[1], 0)[0]
        if own and outputs < 1:
            self.fail(f"num_output must be positive; it is {outputs}")
        if not own and count(bottoms[1][1:]) != length:
            self.fail(f"the rows must have {length} values; they are {shape_text(bottoms[1])}")
        if options.update_center_only and count(bottoms[-1]) != count(bottoms[0][:axis]):
            self.fail(f"needs a class number for each vector, not {shape_text(bottoms[-1])}")
        values = {
            "axis": axis,
            "num_output": outputs,
            "norm": options.distance_type,
            "normalize": options.normalize and own,
            "own": own,
            "labels": options.update_center_only,
        }
        params = (learnable(self, (outputs, length), options.weight_filler),) if own else ()
        return Plan(((*bottoms[0][:axis], outputs),), params, values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        rows: int = plan.values["num_output"]
        return rows * max(count(bottoms[0]), INTERPRETED)
