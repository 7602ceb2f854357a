"""MMDLoss: how far the features of two domains are from each other."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Plan, Shape, count, shape_text
from sparknet.layers.loss import Loss

MOST_KERNELS = 64


class MMDLoss(Loss):
    """mmd_layer.cu of thuml/transfer-caffe (Long et al., Learning Transferable Features with Deep
    Adaptation Networks): the maximum mean discrepancy of bottom 0's records and bottom 1's.

    As many pairs of records are drawn as the larger bottom has, and their Gaussian kernels summed,
    of kernel_num widths: each kernel_mul times the one before, around the mean squared distance,
    which fix_gamma keeps from the first pass on.  As there, the loss is the sum over the pairs, and
    the gradient that of their mean, with the widths held fixed; here it is that of the same pairs.
    Without two records of each domain there is no loss.  Values: kernels, factor, fixed.
    """

    type = "MMDLoss"
    field = "mmd_param"
    mixes_records = True
    unforced = ()

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
