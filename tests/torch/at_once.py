"""A plugin of pytest for a GPU: each pass is recorded when it comes first, as soon as it has run.

SPARKNET_ENGINE=torch SPARKNET_DEVICE=cuda python -m pytest -p tests.torch.at_once …
"""

from sparknet.torch import recorded
from sparknet.torch.recorded import RecordedPasses

recorded.AFTER = 0
_record = RecordedPasses._recorded


def _ran_before(self, reads, layers, memories, flats, checks, work):
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


RecordedPasses._recorded = _ran_before
