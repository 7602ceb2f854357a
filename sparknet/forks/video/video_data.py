"""VideoData: clips of videos, of C3D, TSN and SSD."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from sparknet.forks.video.readers.clips import (
    flow_frames,
    frames,
    open_video,
    read_clips,
    video_frames,
)
from sparknet.layers.layer import Plan, Shape, between, count
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders.annotated import resized
from sparknet.loaders.transform import mean_image
from sparknet.proto import caffe_pb2
from sparknet.proto.untrusted import check_trusted

PATTERN = re.compile(r"[^%]*(%c)?[^%]*%0?\d?d[^%]*")
FRAME = "%06d.jpg"
_FLOW = caffe_pb2.VideoDataParameter.FLOW


class VideoData(SourceLayer):
    """The forks' video_data_layer.cpp, told apart by their fields.

    C3D's (use_image, or neither modality nor num_segments given) makes N x 3 x frames x H x W of
    lines `path frame label`: new_length pictures %06d.jpg of a folder, each sampling_rate, or
    frames of a video.  TSN's makes N x channels x H x W of lines `folder frames label`:
    new_length frames of each of num_segments parts, colours, or the two axes of a flow; crops as
    fix_crop, more_fix_crop, multi_scale, scale_ratios and max_distort say, and is_flow turns x in
    mirrored flows.  SSD's (video_type) reads one video or camera, resized by resize_param.
    Videos and cameras need OpenCV (``sparknet[video]``).
    Values: kind ("clips", "segments", "stream"), source, root_folder, batch_size, size, crop,
    mirror, scale, mean, and those that the kind needs.
    """

    type = "VideoData"
    field = "video_data_param"
    fields = ("transform_param", "image_data_param", "data_param")
    tops = between(1, 2)
    reads = batches = True

    def survey(self) -> Plan:
        kind = self._kind()
        values = self._values(kind)
        shape = {"clips": self._clip, "segments": self._segments, "stream": self._stream}[kind](
            values
        )
        crop = values["crop"]
        if crop and min(shape[-2:]) < crop:
            self.fail(f"crop_size {crop} is larger than the frames, {shape[-2]} x {shape[-1]}")
        stored = shape
        shape = (*shape[:-2], crop, crop) if crop else shape
        values["mean"] = self._mean(stored, shape)
        tops: tuple[Shape, ...] = ((values["batch_size"], *shape),)
        if len(self.parameter.top) > 1:
            many = values.get("labels", 1)
            tops += ((values["batch_size"], many) if many > 1 else (values["batch_size"],),)
        return Plan(tops, values=values)

    def data_set(self) -> Any:
        return None

    def _kind(self) -> str:
        options = self.options
        if options.HasField("video_type") or options.HasField("video_file"):
            return "stream"
        names = ("modality", "num_segments", "name_pattern")
        return "segments" if any(map(options.HasField, names)) else "clips"

    def _values(self, kind: str) -> dict[str, Any]:
        """What all kinds have; C3D's first version has its options in image_data_param."""
        old = self.parameter.HasField("image_data_param")
        options = self.parameter.image_data_param if old else self.options
        transform = self.parameter.transform_param
        batch = self.parameter.data_param.batch_size if kind == "stream" else options.batch_size
        size = self.new_size(options)
        length = max(options.new_length, 1)
        if length > 1 << 16:
            self.fail(f"new_length is {length}; {1 << 16} is the most")
        return {
            "kind": kind,
            "source": options.source,
            "root_folder": options.root_folder,
            "batch_size": self.batch(batch),
            "shuffle": options.shuffle,
            "rand_skip": options.rand_skip,
            "length": length,
            "size": size,
            "crop": transform.crop_size or options.crop_size,
            "mirror": transform.mirror or options.mirror,
            "scale": transform.scale if transform.HasField("scale") else options.scale,
            "images": kind == "segments" or options.use_image,
            "jitter": options.use_temporal_jitter,
            "rate": max(options.sampling_rate, 1),
            "most": self.options.max_sampling_rate if self.options.use_sampling_rate_jitter else 0,
            "labels": self.options.num_of_labels if self.options.use_multiple_label else 1,
        }

    def _clip(self, values: dict[str, Any]) -> Shape:
        values["numbered"] = values["images"] or not values["jitter"]
        with self.reading(f"the list '{values['source']}'"):
            clip = read_clips(values["source"], values["numbered"], values["labels"])[0]
            path = values["root_folder"] + clip.path
            if values["size"]:
                size = values["size"]
            elif values["images"]:
                first = clip.number if not values["jitter"] else 1
                size = frames(path, [first], FRAME, None, True).shape[2:]
            else:
                size = video_frames(open_video(path), path, [0], None).shape[2:]
        return 3, values["length"], *size

    def _segments(self, values: dict[str, Any]) -> Shape:
        options = self.options
        flow = options.modality == _FLOW
        pattern = options.name_pattern or ("flow_%c_%04d.jpg" if flow else "image_%04d.jpg")
        if not PATTERN.fullmatch(pattern) or ("%c" in pattern) != flow or "/" in pattern:
            self.fail(
                f"name_pattern '{pattern[:80]}' must have one number such as %04d, and for flows "
                "%c before it"
            )
        if options.num_segments < 1:
            self.fail("num_segments must be positive")
        color = not options.grayscale
        values.update(flow=flow, pattern=pattern, color=color, segments=options.num_segments)
        size = values["size"]
        with self.reading(f"the list '{values['source']}'"):
            clip = read_clips(values["source"], True)[0]
            if size is None:
                path = values["root_folder"] + clip.path
                one = flow_frames(path, [1], pattern, None) if flow else None
                size = (frames(path, [1], pattern, None, color) if one is None else one).shape[2:]
        channels = 2 if flow else 3 if color else 1
        return channels * values["length"] * options.num_segments, *size

    def _stream(self, values: dict[str, Any]) -> Shape:
        options, how = self.options, self.parameter.transform_param
        if options.video_type == caffe_pb2.VideoDataParameter.WEBCAM:
            values["source"] = options.device_id
        else:
            values["source"] = options.video_file
        values["skip"] = options.skip_frames
        with self.reading(f"the video '{values['source']}'"):
            video = open_video(values["source"])
            size = video_frames(video, str(values["source"]), [0], None).shape[2:]
        if how.HasField("resize_param"):
            if how.resize_param.height < 1 or how.resize_param.width < 1:
                self.fail("resize_param needs height and width")
            size = resized(size, how.resize_param)
        return 3, *size

    def _mean(self, stored: Shape, shape: Shape) -> Any:
        """Of the file, as large as what is stored; or of the values, for each channel."""
        transform = self.parameter.transform_param
        path = transform.mean_file or self.parameter.image_data_param.mean_file
        if path and transform.mean_value:
            self.fail("transform_param takes either mean_file or mean_value; not both")
        if path:
            check_trusted(self.parameter, "to read the mean file")
            with self.reading(f"the mean file '{path}'"):
                mean = mean_image(path) if len(stored) == 3 else mean_volume(path)
            if mean.size != count(stored):
                self.fail(f"the mean file has {mean.size} values; a clip has {count(stored)}")
            return mean.reshape(stored)
        given = np.array(transform.mean_value, np.float32)
        if not len(given):
            return None
        if shape[0] % len(given):
            self.fail(f"has {shape[0]} channels, which {len(given)} of mean_value do not divide")
        times = shape[0] // len(given)
        return np.tile(given, times).reshape(-1, *(1 for _ in shape[1:]))


def mean_volume(path: str) -> Any:
    """The values of a mean of clips, of whatever axes."""
    from sparknet.proto import read_blob

    return np.asarray(read_blob(path))
