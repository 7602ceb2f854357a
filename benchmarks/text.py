"""Compares parsing and printing prototxt with protobuf's text_format.

python -m benchmarks.text
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from google.protobuf import text_format

from sparknet.proto import caffe_pb2, format_text, parse_text

ROUNDS = 7


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compare(what: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    ratios = sorted(their / our for our, their in pairs)
    print(
        f"{what:8} sparknet {median(a for a, _ in pairs):.3f} s, "
        f"protobuf {median(b for _, b in pairs):.3f} s, "
        f"ratio {ratios[0]:.2f} / {median(ratios):.2f} / {ratios[-1]:.2f} (min, median, max)"
    )


def main() -> None:
    net = caffe_pb2.NetParameter()
    for number in range(4000):
        layer = net.layer.add(name=f"conv{number}", type="Convolution", bottom=["a"], top=["b"])
        layer.convolution_param.num_output = number
        layer.convolution_param.weight_filler.std = 0.01
    text = format_text(net)
    print(f"a net of {len(net.layer)} layers, {len(text) / 1e6:.2f} MB of text")
    kind = caffe_pb2.NetParameter
    compare("parse", lambda: parse_text(text, kind), lambda: text_format.Parse(text, kind()))
    compare("print", lambda: format_text(net), lambda: text_format.MessageToString(net))


if __name__ == "__main__":
    main()
