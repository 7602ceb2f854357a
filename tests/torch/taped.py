"""A plugin of pytest: nets whose memory is apart have their passes recorded, on the CPU.

    SPARKNET_ENGINE=torch SPARKNET_DEVICE=apart python -m pytest -p tests.torch.taped …

Each pass is recorded when it comes first, so that whatever a suite computes is computed by replays.
"""

from __future__ import annotations

from sparknet.torch import recorded
from sparknet.torch.memory import DevicePlace
from tests.torch.tape import CpuTape


def tape_of(place: DevicePlace) -> CpuTape | None:
    return CpuTape() if place.apart else None


recorded.tape_of = tape_of
recorded.AFTER = 0
