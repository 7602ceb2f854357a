"""torchvision's classifiers by way of ONNX, against onnxruntime: python -m benchmarks.onnx_zoo

Each is made with random weights, exported by both of PyTorch's exporters, converted, run on two
images, and compared.  ``--write`` puts the table into docs/onnx-models.md; ``--speed`` runs
models/resnet50 and ResNets by way of ONNX in turn.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

NAMES = (
    *("alexnet", "vgg16_bn", "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2"),
    *("densenet121", "inception_v3", "googlenet", "squeezenet1_0", "mobilenet_v2"),
    *("mobilenet_v3_large", "shufflenet_v2_x1_0", "mnasnet1_0", "efficientnet_b0"),
    *("efficientnet_v2_s", "regnet_x_400mf", "regnet_y_400mf", "convnext_tiny", "vit_b_16"),
    *("swin_t", "maxvit_t"),
)
SIZES = {"inception_v3": 299}
ROUNDS = 12
COMMAND, END = "python -m benchmarks.onnx_zoo --write", "<!-- end of the table -->"
PAGE = Path(__file__).parents[1] / "docs" / "onnx-models.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        if options.speed:
            print(speed(Path(folder)))
            return 0
        rows = [row(name, Path(folder)) for name in options.names]
    table = [
        "| model | TorchScript | torch.export | layers that stock Caffe lacks |",
        "|---|---|---|---|",
        *rows,
    ]
    print("\n".join(table))
    if options.write:
        write("\n".join(table))
    return 0


def write(table: str) -> None:
    """Put the table behind the command that makes it."""
    page = PAGE.read_text()
    begin = page.index(COMMAND)
    begin = page.index("\n", begin)
    PAGE.write_text(f"{page[:begin]}\n\n{table}\n\n{page[page.index(END, begin) :]}")


def row(name: str, folder: Path) -> str:
    import torch

    cells, foreign = [], ""
    for dynamo in (False, True):
        path = folder / f"{name}.onnx"
        try:
            size = SIZES.get(name, 224)
            export(lively(name), path, dynamo, torch.randn(2, 3, size, size))
            worst, lacking = compared(path)
            cells.append(f"{worst:.1g}")
            foreign = ", ".join(lacking) or "none"
        except Exception as error:  # the table says it
            cells.append(str(error).splitlines()[0].removeprefix(f"{path}: "))
        for file in folder.iterdir():
            file.unlink()
    line = f"| {name} | {cells[0]} | {cells[1]} | {foreign} |"
    print(line, flush=True)
    return line


def export(model: Any, path: Path, dynamo: bool, image: Any = None) -> None:
    import torch

    image = torch.randn(2, 3, 224, 224) if image is None else image
    if dynamo:
        batch = torch.export.Dim("batch")
        torch.onnx.export(
            model, (image,), path, dynamo=True, dynamic_shapes=({0: batch},), verbose=False
        )
    else:
        torch.onnx.export(
            model,
            (image,),
            path,
            dynamo=False,
            opset_version=17,
            input_names=["data"],
            dynamic_axes={"data": {0: "batch"}},
        )


def classifiers() -> Any:
    """torchvision, also where its own operators are built for another PyTorch.

    The classifiers need none of them, but importing the package does not work without their names.
    """
    import torch

    try:
        return import_module("torchvision")
    except RuntimeError:
        for name in [one for one in sys.modules if one.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
        return import_module("torchvision")


def lively(name: str) -> Any:
    """A model whose statistics and factors are not those of a fresh one."""
    import torch

    torchvision = classifiers()
    torch.manual_seed(1)
    made = {"init_weights": True} if name in ("inception_v3", "googlenet") else {}
    model = getattr(torchvision.models, name)(weights=None, **made).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
        if isinstance(module, torch.nn.Linear) and not module.weight.any():
            module.weight.data.normal_(0, 0.02)
        if hasattr(module, "layer_scale"):
            module.layer_scale.data.uniform_(0.1, 0.5)
    return model


def compared(path: Path) -> tuple[float, list[str]]:
    """The largest difference to onnxruntime, and the layer types that stock Caffe lacks."""
    import sparknet.caffe as caffe
    from sparknet.caffe.weights_io import copy_model
    from sparknet.onnx import foreign_types, read_model
    from sparknet.onnx.onnxruntime_check import largest_difference, run
    from sparknet.onnx.source import read_source

    model = read_model(path, batch=2)
    net = caffe.Net.from_proto(model.net, caffe.TEST)
    copy_model(net._runtime, model)
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        name: np.asarray(rng.normal(size=net.blobs[name].data.shape), np.float32)
        for name in net.inputs
    }
    whole = read_source(path).integers
    feeds |= {name: np.abs(feeds[name]).round() for name in whole}
    for name, value in feeds.items():
        net.blobs[name].data[...] = value
    net.forward()
    want = run(path, {n: x.astype(np.int64) if n in whole else x for n, x in feeds.items()})
    return largest_difference(
        {n: np.asarray(net.blobs[n].data) for n in want}, want
    ), foreign_types(model)


def speed(folder: Path) -> str:
    """Processor time of models/resnet50 and of nets by way of ONNX, in turn.

    OMP_NUM_THREADS=1 keeps threads from waiting for each other.

    torchvision's ResNet-50 has its strides in the 3 x 3 convolutions, which is more work; with the
    strides where models/resnet50 has them it is the same net.
    """
    from sparknet import models
    from sparknet.caffe.weights_io import as_model
    from sparknet.graph.records import set_batch
    from sparknet.onnx import read_model, write_model

    own = models.net("resnet50").to_proto()
    set_batch(own, 8)
    first = _runnable(own)
    back, same, usual = (folder / f"{name}.onnx" for name in ("back", "same", "usual"))
    write_model(back, as_model(first._runtime))
    export(lively("resnet50"), usual, False)
    export(_early_strides(lively("resnet50")), same, False)
    nets = {"models/resnet50": first}
    for name, path in (("there and back", back), ("of the same strides", same), ("as is", usual)):
        nets[name] = _runnable(read_model(path, batch=8).net)
    times: dict[str, list[float]] = {name: [] for name in nets}
    for _ in range(ROUNDS + 1):
        for name, net in nets.items():
            start = time.process_time()
            net.forward()
            times[name].append(time.process_time() - start)
    base = np.asarray(times.pop("models/resnet50")[1:])
    lines = [f"models/resnet50: {1000 * float(np.median(base)):.0f} ms for 8 images"]
    for name, found in times.items():
        ratios = base / np.asarray(found[1:])
        spread = f"{ratios.min():.2f} to {ratios.max():.2f}"
        lines.append(f"{name}: {float(np.median(ratios)):.2f} times as fast ({spread})")
    return "\n".join(lines)


def _runnable(net: Any) -> Any:
    import sparknet.caffe as caffe

    return caffe.Net.from_proto(net, caffe.TEST, keep_blobs=False, seed=1)


def _early_strides(model: Any) -> Any:
    """Strides in the first convolution of each block, as in the first ResNets."""
    for name in ("layer2", "layer3", "layer4"):
        block = getattr(model, name)[0]
        block.conv1.stride, block.conv2.stride = (2, 2), (1, 1)
    return model


if __name__ == "__main__":
    raise SystemExit(main())
