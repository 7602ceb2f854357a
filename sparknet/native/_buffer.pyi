class Buffer:
    """A class whose method _exporter returns what memoryview(self) shows."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
