"""Rows of bytes that become a batch on the device, as native/engine/data/transform.cpp does."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparknet.native.staged_rows import StagedRows
from sparknet.native.transform import Bytes, Transformation
from sparknet.torch.layer import TorchBlob
from sparknet.torch.memory import DevicePlace
from sparknet.torch.random import GOLDEN, Draw, mixed, shifted, signed

Places = np.ndarray[Any, np.dtype[np.int64]]


class TorchRows:
    """Rows for the blobs of a net on a device."""

    def __init__(self, place: DevicePlace, blobs: list[TorchBlob]) -> None:
        self._place, self._blobs = place, blobs

    def pin(self, rows: Bytes) -> Tensor | None:
        if self._place.device.type != "cuda":
            return None
        pinned = torch.empty(rows.shape, dtype=torch.uint8, pin_memory=True)
        pinned.numpy()[...] = rows
        return pinned

    def put(self, blob: int, rows: StagedRows) -> None:
        one = self._blobs[blob]
        one.wanted = True
        if rows.pinned is not None:
            moved = rows.pinned.to(self._place.device, non_blocking=True)
        else:
            moved = self._place.copy_of(torch.from_numpy(np.require(rows.rows, None, ["C", "W"])))
        one.data.write(transformed(moved, rows.how, rows.first))


def transformed(rows: Tensor, how: Transformation, first: int) -> Tensor:
    """Return a batch of float32 of rows of bytes, on their device."""
    count, channels, stored_height, stored_width = rows.shape
    height, width = how.shape((channels, stored_height, stored_width))[1:]
    mean = None if how.mean is None else _on(rows, np.ascontiguousarray(how.mean, np.float32))
    if how.crop is None and not how.mirror:
        pixels = rows.to(torch.float32)
        means = mean
    else:
        tops, lefts, mirrors = places(
            how, stored_height - height, stored_width - width, count, first
        )
        across = np.arange(width)
        columns = np.where(mirrors[:, None], width - 1 - across, across)
        down = np.broadcast_to(np.arange(height), (count, height))
        pixels = _picked(rows, tops[:, None] + down, lefts[:, None] + columns).to(torch.float32)
        means = mean
        if mean is not None:
            # A mean of the crop's size is subtracted after the crop.
            after = mean.shape[1:] == (height, width)
            at = (down, columns) if after else (tops[:, None] + down, lefts[:, None] + columns)
            means = _picked(mean[None].expand(count, *mean.shape), *at)
    if means is None:
        values = np.empty(channels, np.float32)
        values[:] = how.mean_values or 0.0
        means = _on(rows, values)[:, None, None]
    scales = np.empty(channels, np.float32)
    scales[:] = how.scale / np.asarray(how.std or 1.0, np.float64)
    return (pixels - means) * _on(rows, scales)[:, None, None]


def places(
    how: Transformation, rows: int, columns: int, count: int, first: int
) -> tuple[Places, Places, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return where each item's crop of rows x columns begins, and whether it is mirrored."""
    draw = Draw(mixed(mixed(how.seed ^ GOLDEN) + 1))
    numbers = 3 * (torch.arange(count, dtype=torch.int64) + signed(first % (1 << 64)))

    def below(which: int, bound: int) -> Places:
        """Return a number from 0 to the bound for each item."""
        numbers_below: Places = (
            (shifted(draw.bits_of(numbers + which), 32) * (bound + 1)) >> 32
        ).numpy()
        return numbers_below

    tops, lefts = np.full(count, rows // 2), np.full(count, columns // 2)
    if how.random_crop:
        tops, lefts = below(1, rows), below(2, columns)
    is_high = (draw.bits_of(numbers) < 0).numpy()
    return tops, lefts, is_high if how.mirror else np.zeros(count, bool)


def _picked(images: Tensor, rows: Any, columns: Any) -> Tensor:
    """Return these rows and columns of each image."""
    device = images.device
    at = torch.from_numpy(np.ascontiguousarray(rows)).to(device)[:, None, :, None]
    across = torch.from_numpy(np.ascontiguousarray(columns)).to(device)[:, None, None, :]
    number = torch.arange(len(images), device=device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=device)[None, :, None, None]
    return images[number, channel, at, across]


def _on(rows: Tensor, values: Any) -> Tensor:
    return torch.from_numpy(np.require(values, None, ["C", "W"])).to(rows.device)
