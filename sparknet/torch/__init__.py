"""PyTorch under Caffe's nets: an engine for GPUs and other processors, and nets as modules.

Nothing here imports torch before it is used, and nothing else in sparknet imports torch at all.
"""

from __future__ import annotations

from typing import Any

from sparknet.torch.chosen import chosen_device, engine_of, named_device, need_torch

__all__ = ["chosen_device", "engine_of", "module", "named_device", "need_torch"]


def module(net: Any, *, share: bool = False) -> Any:
    """A `torch.nn.Module` of a net, of `sparknet.Net` or `sparknet.caffe.Net`: the same names, and
    the same results and gradients as the engine of PyTorch has.

    Its weights are copies, or with ``share`` the net's own memory.  Batches may have other sizes
    than the net's.
    """
    need_torch()
    from sparknet.torch.net_module import NetModule

    return NetModule(net if hasattr(net, "graph") else net.net, share)
