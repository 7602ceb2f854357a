"""A plugin of pytest: nets whose memory is apart compute on the CPU as they would on a GPU.

    SPARKNET_ENGINE=torch SPARKNET_DEVICE=apart python -m pytest -p tests.torch.taped …

Each pass is recorded when it comes first, so that whatever a suite computes is computed by replays,
and convolutions have the channels of a pixel side by side.
"""

from sparknet.torch import recorded
from sparknet.torch.memory import DevicePlace
from sparknet.torch.translations import convolutions
from tests.torch.tape import CpuTape


def tape_of(place: DevicePlace) -> CpuTape | None:
    return CpuTape() if place.apart else None


recorded.tape_of = tape_of
recorded.AFTER = 0
convolutions._wants_channels_last = lambda layer, x: True
