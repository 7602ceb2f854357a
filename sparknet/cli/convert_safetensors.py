"""`sparknet convert safetensors`: weights by PyTorch's names, in and out."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparknet.cli import net_file
from sparknet.cli.verb import WrongUse


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("weights", metavar="IN", help="a .safetensors, .caffemodel, .h5 or .onnx")
    parser.add_argument(
        "out",
        metavar="OUT",
        nargs="?",
        help="a .caffemodel or .h5, or a .safetensors; of the same name beside IN unless given",
    )
    parser.add_argument("--like", metavar="NET", help="the net; a model may be its own")
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16", "bf16"),
        default="float32",
        help="what a .safetensors holds; float32 by default",
    )


def convert(chosen: Namespace) -> int:
    from sparknet.onnx import open_model
    from sparknet.proto import write_model
    from sparknet.weights.safetensors import is_safetensors, read_tensors, write_tensors
    from sparknet.weights.state_dict import from_state_dict, state_dict

    inwards = is_safetensors(chosen.weights)
    out = chosen.out or str(
        Path(chosen.weights).with_suffix(".caffemodel" if inwards else ".safetensors")
    )
    if inwards == is_safetensors(out):
        raise WrongUse("one of the files is a .safetensors, and the other is not")
    if inwards and not chosen.like:
        raise WrongUse("a .safetensors has no net: give --like NET.prototxt")
    net = net_file.read(chosen.like) if chosen.like else None
    if inwards:
        assert net is not None
        model = from_state_dict(read_tensors(chosen.weights), net)
        write_model(out, model)
        count = len(model.arrays)
    else:
        found = state_dict(open_model(chosen.weights), net)
        write_tensors(out, found, chosen.dtype)
        count = len(found)
    print(f"{out}: {count} {'layers' if inwards else 'arrays'}", file=sys.stderr)
    return 0
