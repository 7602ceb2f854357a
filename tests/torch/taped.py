"""A plugin of pytest: nets whose memory is apart compute on the CPU as they would on a GPU.

    SPARKNET_ENGINE=torch SPARKNET_DEVICE=apart python -m pytest -p tests.torch.taped …

Each pass is recorded when it comes first, so that whatever a suite computes is computed by replays,
and convolutions have the channels of a pixel side by side.
"""

import torch

from sparknet.torch import recorded
from sparknet.torch.memory import DevicePlace
from sparknet.torch.translations import convolutions
from tests.torch.tape import CpuTape


def tape_of(place: DevicePlace) -> CpuTape | None:
    return CpuTape() if place.apart else None


def laid(layer, x):
    """Lay images channels last, but for what PyTorch 2.13 overruns on processors with AVX2 alone.

    There its gradient to windows of 1 x 1 with a stride writes behind the end, where the channels
    do not fill vectors of eight.
    """
    if x.ndim != 4:
        return x
    options = layer.options
    is_safe = max(options["kernel"]) > 1 or max(options["stride"]) == 1 or x.shape[1] % 8 == 0
    return x.contiguous(memory_format=torch.channels_last if is_safe else torch.contiguous_format)


recorded.tape_of = tape_of
recorded.AFTER = 0
convolutions._laid = laid
