"""Mirror: a flat buffer of what a backend keeps elsewhere, copied only when it must be."""

from __future__ import annotations

from collections.abc import Callable

from sparknet.native import NDArray

Copy = Callable[[NDArray], None]


class Mirror:
    """A flat buffer whose values come from a backend, and go back if somebody writes there.

    ``gather`` fills the buffer from the backend, ``scatter`` does the opposite.  Both are put off
    for as long as possible: a round of many iterations takes one of each.
    """

    def __init__(self, size: int, gather: Copy, scatter: Copy) -> None:
        self._size, self._gather, self._scatter = size, gather, scatter
        self._buffer: NDArray | None = None
        self._is_stale = True
        self._version = 0

    @property
    def array(self) -> NDArray:
        """The buffer with the newest values, always the same one."""
        if self._buffer is None:
            self._buffer = NDArray.zeros((self._size,))
        if self._is_stale:
            self._gather(self._buffer)
            self._keep(self._buffer)
        return self._buffer

    @property
    def is_written(self) -> bool:
        """Whether somebody may have written to the buffer since it was like the backend's own."""
        if self._buffer is None or self._is_stale:
            return False
        return self._version == 0 or self._buffer.version != self._version

    def settle(self) -> None:
        """Let the backend have what was written to the buffer."""
        if self.is_written:
            self.send()

    def send(self) -> None:
        """Let the backend have the buffer's values, written or not."""
        buffer = self.array
        self._scatter(buffer)
        self._keep(buffer)

    def expire(self) -> None:
        """The backend has newer values from now on."""
        self._is_stale = True

    def _keep(self, buffer: NDArray) -> None:
        self._is_stale, self._version = False, buffer.version
