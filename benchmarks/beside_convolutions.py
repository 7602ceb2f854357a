"""What a net's other layers take, beside its convolutions, in the test phase.

    python -m benchmarks.beside_convolutions [NET.prototxt …]
Without a net it is SSD-300 of the zoo. A layer that is computed with a convolution is part of it.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

from sparknet import Net, models
from sparknet.caffe.timing import fill_inputs, measure
from sparknet.layers import TEST


def milliseconds(net: Net, iterations: int) -> tuple[float, dict[str, float]]:
    """Of the convolutions, and of each other type of layer: medians, after two passes."""
    fill_inputs(net.net)
    timing = measure(net.net, iterations, False, None)
    convolutions, others = 0.0, defaultdict[str, float](float)
    for number, node in enumerate(timing.graph.nodes):
        if "convolution" in node.type.lower():
            convolutions += timing.forward_ms(number)
        else:
            others[node.type] += timing.forward_ms(number)
    return convolutions, others


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("nets", nargs="*")
    parser.add_argument("--iterations", type=int, default=15)
    asked = parser.parse_args()
    print("| net | convolutions | others | others / convolutions | the largest of them |")
    print("|---|---|---|---|---|")
    for source in asked.nets or [models.net("ssd300_vgg16")]:
        net = Net(source, phase=TEST)
        name = net.net.name
        convolutions, others = milliseconds(net, asked.iterations)
        beside = sum(others.values())
        largest = sorted(others.items(), key=lambda one: -one[1])[:3]
        told = ", ".join(f"{kind} {ms:.1f} ms" for kind, ms in largest)
        share = beside / convolutions
        print(f"| {name} | {convolutions:.1f} ms | {beside:.1f} ms | {share:.1%} | {told} |")


if __name__ == "__main__":
    main()
