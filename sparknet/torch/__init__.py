"""PyTorch under Caffe's nets: an engine for GPUs and other processors, and nets as modules.

Nothing here imports torch before it is used, and nothing else in sparknet imports torch at all.
"""

from __future__ import annotations

from sparknet.torch.chosen import chosen_device, engine_of, need_torch

__all__ = ["chosen_device", "engine_of", "need_torch"]
