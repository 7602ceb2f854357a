"""extract_features.  Caffe: tools/extract_features.cpp."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from sparknet.cli.convert_target import new_database
from sparknet.cli.feature_files import feature_bytes
from sparknet.cli.tools.tool import Flags, Tool, complain, said
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.caffe import Net


def _extract(words: list[str], flags: Flags) -> int:
    weights, described, names, outs, batches, backend, *device = words
    blobs, paths = names.split(","), outs.split(",")
    if len(blobs) != len(paths):
        raise WrongUse(f"{len(blobs)} blobs need as many databases, not {len(paths)}")
    if not batches.isdecimal():
        raise WrongUse(f"the number of batches is '{batches}'")
    if device[:1] == ["GPU"]:
        from sparknet.devices import take_gpu

        if told := take_gpu(int(device[1]) if device[1:] else 0):
            complain("extract_features", f"GPU: {told}")
    net = _net(described, weights, blobs)
    with ExitStack() as stack:
        files = [stack.enter_context(new_database(path, backend)) for path in paths]
        for _ in range(int(batches)):
            found = net.forward(blobs=blobs)
            for file, path, blob in zip(files, paths, blobs, strict=True):
                for values in found[blob]:
                    file.put(b"%010d" % file.entries, feature_bytes(path, values))
        for file, blob in zip(files, blobs, strict=True):
            said(f"Extracted features of {file.entries} query images for feature blob {blob}")
    said("Successfully extracted the features!")
    return 0


def _net(described: str, weights: str, blobs: list[str]) -> Net:
    from sparknet.caffe import TEST, Net
    from sparknet.cli import net_file
    from sparknet.errors import SpecError

    net = Net.from_proto(net_file.read(described), TEST)
    net.copy_from(weights)
    for blob in blobs:
        if blob not in net.blobs:
            raise SpecError(f"{described}: there is no blob '{blob}'")
        if not net.blobs[blob].shape:
            raise SpecError(f"{described}: '{blob}' is one number, not a row for each image")
    if net.inputs:
        raise SpecError(f"{described}: nothing feeds the net's inputs: {', '.join(net.inputs)}")
    return net


EXTRACT_FEATURES = Tool(
    "extract_features",
    "WEIGHTS NET BLOB[,BLOB] DB_NAME[,DB_NAME] BATCHES DB_TYPE [CPU|GPU] [DEVICE_ID=0]",
    _extract,
)
