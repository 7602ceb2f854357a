"""VideoData: batches of clips (C3D, TSN, SSD: video_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost
from sparknet.errors import FileError
from sparknet.forks.video.readers.clips import (
    VideoClip,
    fixed_places,
    flow_frames,
    frame_count,
    frames,
    open_video,
    read_clips,
    scaled_crops,
    segments,
    video_frames,
)
from sparknet.forks.video.video_data import FRAME, VideoData
from sparknet.layers.layer import TRAIN
from sparknet.loaders.annotated import Annotated, prepare
from sparknet.loaders.decoders import Decoders
from sparknet.loaders.prefetch import Array, Arrays, Maker
from sparknet.loaders.resize import resize


class VideoDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        layer, values = self.node.layer, self.node.plan.values
        assert isinstance(layer, VideoData)
        tops, seed = len(self.node.tops), self.seed
        if values["kind"] == "stream":
            return partial(StreamMaker, layer, values, tops, seed)
        kind = SegmentMaker if values["kind"] == "segments" else ClipMaker
        return partial(kind, layer, values, tops, seed)


class ClipMaker:
    """Item n is line n of the list, around it; with `shuffle` each round has its own order."""

    def __init__(self, layer: VideoData, values: Any, tops: int, seed: int, first: int) -> None:
        self.values, self.tops, self.seed = values, tops, seed
        self.transform = layer.parameter.transform_param
        self.train = layer.phase == TRAIN
        numbered = values.get("numbered", True)
        self.clips = read_clips(values["source"], numbered, values["labels"])
        skip = values["rand_skip"]
        self.skip = int(np.random.default_rng([seed, 0]).integers(skip)) if skip else 0
        self.decoders = Decoders()

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        size = self.values["batch_size"]
        made = self.decoders.map(self._made, range(number * size, (number + 1) * size))
        shapes = {data.shape for data, _ in made}
        if len(shapes) > 1:
            source = self.values["source"]
            raise FileError(source, "holds clips of several sizes: give new_height and a crop")
        data, marks = zip(*made, strict=True)
        labels = np.array(marks, np.float32)[:, : self.values["labels"]]
        if self.values["labels"] == 1:
            labels = labels[:, 0]
        return [np.stack(data), np.ascontiguousarray(labels)][: self.tops]

    def close(self) -> None:
        self.decoders.close()

    def _made(self, item: int) -> tuple[Array, tuple[int, ...]]:
        clip, rng = self._clip(item), np.random.default_rng([self.seed, 1, item])
        stored = self._stored(clip, rng)
        high, wide, top, left = self._crop(stored.shape[-2:], rng)
        part = stored[..., top : top + high, left : left + wide]
        crop = self.values["crop"]
        if crop and (high, wide) != (crop, crop):
            part = _resized(part, crop)
        mirrored = bool(self.values["mirror"] and rng.integers(2))
        values = part.astype(np.float32)
        if mirrored:
            values = values[..., ::-1]
            if self.transform.is_flow:
                values[::2] = 255 - values[::2]
        mean = self.values["mean"]
        if mean is not None:
            if mean.shape[-2:] == stored.shape[-2:] and mean.size > len(mean):
                mean = mean[..., top : top + values.shape[-2], left : left + values.shape[-1]]
                mean = mean[..., ::-1] if mirrored else mean
            values = values - mean
        labels = clip.labels[: self.values["labels"]]
        return np.ascontiguousarray(values * np.float32(self.values["scale"])), labels

    def _clip(self, item: int) -> VideoClip:
        turn, place = divmod(self.skip + item, len(self.clips))
        if not self.values["shuffle"]:
            return self.clips[place]
        order = np.random.default_rng([self.seed, 2, turn]).permutation(len(self.clips))
        return self.clips[int(order[place])]

    def _stored(self, clip: VideoClip, rng: np.random.Generator) -> Array:
        """Channels x frames x height x width bytes."""
        values = self.values
        path, length = values["root_folder"] + clip.path, values["length"]
        rate = int(rng.integers(values["most"])) + 1 if values["most"] else values["rate"]
        first, whole = clip.number, length * rate
        video = None if values["images"] else open_video(path)
        if values["jitter"]:
            many = clip.number if video is None else frame_count(video)
            if many < whole:
                raise FileError(path, f"has {many} frames; a clip takes {whole}")
            first = int(rng.integers(many - whole + 1)) if self.train or video is not None else 0
            first += int(video is None)
        numbers = range(first, first + whole, rate)
        if video is None:
            found = frames(path, numbers, FRAME, values["size"], True)
        else:
            found = video_frames(video, path, numbers, values["size"])
        return np.asarray(found.transpose(1, 0, 2, 3))

    def _crop(self, size: tuple[int, int], rng: np.random.Generator) -> tuple[int, int, int, int]:
        """Height and width of the part that is taken, its first row and column."""
        crop = self.values["crop"]
        if not crop:
            return *size, 0, 0
        if min(size) < crop:
            raise FileError(self.values["source"], f"has a clip that is smaller than {crop}")
        free = size[0] - crop, size[1] - crop
        if not self.train:
            return crop, crop, free[0] // 2, free[1] // 2
        return crop, crop, int(rng.integers(free[0] + 1)), int(rng.integers(free[1] + 1))


class SegmentMaker(ClipMaker):
    """The line's number is how many frames the video has."""

    def _stored(self, clip: VideoClip, rng: np.random.Generator) -> Array:
        """Channels of all frames x height x width bytes."""
        values = self.values
        path, length = values["root_folder"] + clip.path, values["length"]
        parts = segments(clip.number, values["segments"], length, rng if self.train else None)
        numbers = [first + number for first in parts for number in range(1, length + 1)]
        if values["flow"]:
            found = flow_frames(path, numbers, values["pattern"], values["size"])
        else:
            found = frames(path, numbers, values["pattern"], values["size"], values["color"])
        return found.reshape(-1, *found.shape[2:])

    def _crop(self, size: tuple[int, int], rng: np.random.Generator) -> tuple[int, int, int, int]:
        how, crop = self.transform, self.values["crop"]
        if not (self.train and crop) or min(size) < crop:
            return super()._crop(size, rng)
        high = wide = crop
        if how.multi_scale:
            sizes = scaled_crops(size, crop, how.scale_ratios, how.max_distort)
            high, wide = sizes[rng.integers(len(sizes))] if sizes else (crop, crop)
        high, wide = min(high, size[0]), min(wide, size[1])
        free = size[0] - high, size[1] - wide
        if how.fix_crop:
            places = fixed_places(free, how.more_fix_crop)
            return high, wide, *places[rng.integers(len(places))]
        return high, wide, int(rng.integers(free[0] + 1)), int(rng.integers(free[1] + 1))


class StreamMaker:
    """Frame after frame of a video, around it, or of a camera."""

    def __init__(self, layer: VideoData, values: Any, tops: int, seed: int, first: int) -> None:
        self.values, self.tops, self.seed = values, tops, seed
        self.transform = layer.parameter.transform_param
        self.train = layer.phase == TRAIN
        self.video = open_video(values["source"])
        for _ in range(first * values["batch_size"]):
            self._next()

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        size = self.values["batch_size"]
        images = [self._image(number * size + place) for place in range(size)]
        return [np.stack(images), np.zeros(size, np.float32)][: self.tops]

    def close(self) -> None:
        self.video.release()

    def _image(self, item: int) -> Array:
        nothing = np.zeros((0, 4), np.float32)
        one = Annotated(self._next(), nothing, np.zeros((0, 3), np.float32))
        rng = np.random.default_rng([self.seed, item])
        image = prepare(one, self.transform, [], rng, self.train).image
        values = image.transpose(2, 0, 1).astype(np.float32, order="C")
        if self.values["mean"] is not None:
            values -= self.values["mean"]
        return np.ascontiguousarray(values * np.float32(self.values["scale"]))

    def _next(self) -> Array:
        """The next frame that is not skipped; after the last one the first."""
        for _ in range(self.values["skip"]):
            self.video.grab()
        fine, pixels = self.video.read()
        if not fine:
            self.video.release()
            self.video = open_video(self.values["source"])
            fine, pixels = self.video.read()
        if not fine:
            raise FileError(str(self.values["source"]), "holds no frame")
        found: Array = pixels
        return found


def _resized(part: Array, crop: int) -> Array:
    """All channels in another size."""
    lead = part.shape[:-2]
    planes = part.reshape(-1, *part.shape[-2:])
    found = [
        resize(np.ascontiguousarray(one[:, :, None]), (crop, crop), "cv2.linear") for one in planes
    ]
    return np.stack(found).reshape(*lead, crop, crop)
