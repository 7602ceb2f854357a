"""A plugin of pytest for a GPU: each pass is recorded when it comes first, as soon as it has run.

SPARKNET_ENGINE=torch SPARKNET_DEVICE=cuda python -m pytest -p tests.torch.at_once …
"""

from collections.abc import Sequence
from typing import Any

from sparknet.torch import recorded
from sparknet.torch.layer import TorchLayer
from sparknet.torch.memory import Buffer, Memory
from sparknet.torch.recorded import Recorded, RecordedPasses

recorded.AFTER = 0
_record = RecordedPasses._recorded


def _ran_before(
    self: RecordedPasses,
    reads: Any,
    layers: Sequence[TorchLayer],
    memories: Sequence[Memory],
    flats: Sequence[Buffer],
    checks: list[Any],
    work: recorded.Work,
) -> Recorded | None:
    """Libraries are made ready by a pass of which nothing stays."""
    tape = recorded.tape_of(self._place)
    assert tape is not None
    before = [flat._values.clone() for flat in flats]
    with recorded._left_as_it_was(layers, memories, flats):
        tape.rehearse(work)
    checks.clear()
    for flat, values in zip(flats, before, strict=True):
        flat._values.copy_(values)
    return _record(self, reads, layers, memories, flats, checks, work)


RecordedPasses._recorded = _ran_before  # type: ignore[method-assign]
