"""Runs one script of `benchmarks.opencv.scripts`, and writes what its nets computed."""

from __future__ import annotations

import argparse
import builtins
import itertools
import os
import re
import runpy
import sys
import time
import types
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np

SCRIPT, OUT, PLACE = (Path(word) for word in sys.argv[1:4])
WORK = Path(os.environ["SCRIPT_WORK"])
PHOTOGRAPH, LABELS = WORK / "photograph.jpg", WORK / "labels.txt"
FRAMES = 2
outputs: list[Any] = []
nets: list[str] = []


def photograph() -> Any:
    """A portrait of scikit-image's, in BGR."""
    return np.ascontiguousarray(import_module("skimage.data").astronaut()[:, :, ::-1])


class Camera:
    """VideoCapture, and imutils' streams: a photograph, a few times.

    A file ends behind its frames; somebody interrupts the script at the end of a camera's.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.left = FRAMES
        self.stream = self
        self.is_file = any(isinstance(word, str) for word in (*args, *kwargs.values()))

    def read(self) -> Any:
        self.left -= 1
        frame = photograph() if self.left >= 0 else None
        if self.left < (-FRAMES if self.is_file else 0):
            raise KeyboardInterrupt
        return frame if self.is_stream else (frame is not None, frame)

    is_stream = False

    def isOpened(self) -> bool:  # noqa: N802
        return self.left > 0

    def start(self) -> Any:
        return self

    def get(self, *args: Any) -> float:
        return 30.0

    def more(self) -> bool:
        return self.left > 0

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class Stream(Camera):
    is_stream = True


class Recorder:
    """A net whose outputs are kept."""

    def __init__(self, net: Any) -> None:
        self._net = net

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        result = self._net.forward(*args, **kwargs)
        for array in result if isinstance(result, tuple | list) else [result]:
            outputs.append(np.array(array))
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._net, name)


def find_file(name: Any, suffixes: tuple[str, ...], anywhere: bool = True) -> Path | None:
    """Return a file of this name: where it is said to be, beside the script, or anywhere."""
    path = Path(str(name).replace("\\", "/"))
    if path.is_file():
        return path
    roots = [SCRIPT.parent, PLACE / SCRIPT.relative_to(PLACE).parts[0], PLACE]
    for root in roots if anywhere else roots[:2]:
        for other in sorted(root.rglob(f"{path.name}*")):
            if other.name.endswith(suffixes) and other.stat().st_size:
                return other
    return None


KNOWN = {
    "res10": "sr6033*/deploy.prototxt.txt",
    "mobilenet": "djmv*/*.prototxt",
    "colorization": "molnarkg7*/*.prototxt",
    "age_": "aarohi1822*/age_deploy.prototxt",
    "gender": "Sayali2408*/gender_deploy.prototxt",
    "mpi": "toUpperCase78*/pose/mpi/pose_deploy_linevec.prototxt",
    "coco": "toUpperCase78*/pose/coco/pose_deploy_linevec.prototxt",
    "hed": "EWassmann*/deploy.prototxt",
}
"""Prototxts for scripts whose repository has none, by a word of their files' names."""


def files(prototxt: Any, caffemodel: Any) -> tuple[str, str]:
    """Return both files' names; drawn weights where there are none."""
    kinds = (".prototxt", ".txt")
    net = find_file(prototxt, kinds, anywhere=False)
    names = f"{Path(str(caffemodel)).name} {Path(str(prototxt)).name}".lower()
    if net is None:
        pattern = next((value for key, value in KNOWN.items() if key in names), "")
        net = next(iter(PLACE.glob(pattern)), None) if pattern else find_file(prototxt, kinds)
    if net is None:
        raise FileNotFoundError(f"no prototxt {prototxt}")
    text = net.read_text(errors="replace")
    title = re.search(r'^\s*name\s*:\s*["\']([^"\']+)', text)
    if "data_bn" in text:
        nets.append("res10")
        weights = next(iter(WORK.parent.rglob("res10_300x300_ssd_iter_140000.caffemodel")))
        return str(net), str(weights)
    name = net.name.split(".")[0]
    nets.append(f"{title[1] if title else name}, drawn")
    target = WORK / f"{_key(net)}.caffemodel"
    if not target.exists():
        _draw(net, target)
    return str(net), str(target)


def _key(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _draw(net: Path, target: Path) -> None:
    from sparknet import caffe
    from sparknet.opencv.importer import read_network
    from sparknet.opencv.net import Net
    from sparknet.proto import read_model, write_model

    described = Net(read_network(str(net), None))
    shapes = {name: shape or (1, 3, 224, 224) for name, shape in described._shapes.items()}
    shapes = {name: tuple(max(size, 1) for size in shape) for name, shape in shapes.items()}
    built = caffe.Net.from_proto(described._net_message(shapes), caffe.TEST)
    rng = np.random.default_rng(3)
    for node in built.graph.nodes:
        for number, blob in enumerate(built.params.get(node.name, ())):
            fan = max(int(np.prod(blob.shape[1:])), 1)
            values = rng.normal(0, (2 / fan) ** 0.5 if number == 0 else 0.05, blob.shape)
            if any(word in node.name for word in ("mbox", "score", "313")):
                values *= 0.01  # small boxes; sigmoids and softmaxes that are no steps
            if node.type in ("BatchNorm", "Scale", "Normalize"):
                values = (
                    np.abs(values) * 0.1 + 1 if number != 1 or node.type == "BatchNorm" else values
                )
            blob.data[...] = values
    built.save(str(target))
    names = {shown: own for own, shown in described._network.aliases.items()}
    model = read_model(target)
    for layer in model.net.layer:
        layer.name = names.get(layer.name, layer.name)
    write_model(target, model)


def stand_in(cv2: Any) -> None:
    read = cv2.dnn.readNetFromCaffe
    cv2.imwrite(str(PHOTOGRAPH), photograph())
    LABELS.write_text("".join(f"n{number:08} label{number}\n" for number in range(1000)))

    def read_caffe(prototxt: Any, caffeModel: Any = "") -> Any:  # noqa: N803
        net = read(*files(prototxt, caffeModel))
        net.enableWinograd(False)
        return Recorder(net)

    read_any = cv2.dnn.readNet

    def read_net(model: Any, config: Any = "", framework: str = "") -> Any:
        names = [str(model), str(config)]
        if any(".caffemodel" in name or ".prototxt" in name for name in names):
            names.sort(key=lambda name: ".caffemodel" in name)
            return read_caffe(*names)
        return read_any(*(existing(name) for name in names), framework)

    def existing(name: str) -> str:
        """Return the name of a file of TensorFlow's, where any of the repositories has it."""
        ends = (".pb", ".pbtxt")
        path = find_file(name, ends) if name.endswith(ends) else None
        return str(path) if path else name

    cv2.dnn.readNetFromCaffe, cv2.dnn.readNet = read_caffe, read_net
    cv2.VideoCapture = Camera
    imread = cv2.imread

    def read_image(name: Any, *flags: Any) -> Any:
        image = imread(str(name), *flags)
        return photograph() if image is None else image

    cv2.imread = read_image
    load = np.load

    def load_array(name: Any, *args: Any, **kwargs: Any) -> Any:
        path = find_file(name, (".npy",)) if str(name).endswith(".npy") else None
        return load(path or name, *args, **kwargs)

    np.load = load_array  # type: ignore[assignment]
    read_tensorflow = cv2.dnn.readNetFromTensorflow
    cv2.dnn.readNetFromTensorflow = lambda *names: read_tensorflow(*map(existing, names))
    keys = itertools.chain([-1] * FRAMES, itertools.cycle([ord("q"), 27]))
    cv2.waitKey = lambda delay=0: next(keys) if delay > 0 else ord("q")
    for name in (
        "imshow",
        "namedWindow",
        "destroyAllWindows",
        "destroyWindow",
        "moveWindow",
        "resizeWindow",
        "setWindowProperty",
        "createTrackbar",
        "startWindowThread",
        "setMouseCallback",
    ):
        setattr(cv2, name, lambda *args, **kwargs: None)
    cv2.selectROI = lambda title, image, *args: (0, 0, image.shape[1], image.shape[0])
    cv2.VideoWriter = Stream
    cv2.VideoWriter_fourcc = lambda *args: 0
    video = import_module("imutils.video")
    for name in ("VideoStream", "FileVideoStream", "WebcamVideoStream"):
        setattr(video, name, Stream)
    time.sleep = lambda seconds: None
    builtins.input = lambda *args: "1"


def describe() -> tuple[str, str]:
    """Return the names of a prototxt and a caffemodel that a script means."""
    text = SCRIPT.read_text(errors="replace")
    if "class8_ab" in text:
        return "colorization_deploy_v2.prototxt", "colorization_release_v2.caffemodel"
    name = "MobileNetSSD_deploy" if "MobileNetSSD" in text or "aeroplane" in text else "res10"
    own = sorted(SCRIPT.parent.glob("*.prototxt*"))
    fallback = "deploy.prototxt.txt" if name == "res10" else "MobileNetSSD_deploy.prototxt"
    return str(own[0]) if own else fallback, f"{name}.caffemodel"


def arguments(parser: Any, *args: Any) -> Any:
    """Values for a parser: files by the arguments' names."""
    values = {}
    for action in parser._actions:
        name = action.dest
        words = f"{name} {action.help}".lower()
        value = action.default
        if isinstance(value, str) and action.type and not isinstance(action.type, str):
            value = action.type(value)
        if value in (None, argparse.SUPPRESS) and name != "help":
            net = describe()
            if name == "prototxt":
                value = net[0]
            elif name in ("model", "caffemodel"):
                value = net[1]
            elif name == "points":
                value = "pts_in_hull.npy"
            elif any(word in words for word in ("label", "class", "synset")):
                value = str(LABELS)
            elif "image" in words or (action.required and value is None):
                value = str(PHOTOGRAPH)
        values[name] = value
    return argparse.Namespace(**values)


def main() -> None:
    import cv2

    warnings.simplefilter("ignore")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        import sparknet.opencv

        sparknet.opencv.install()
    stand_in(cv2)
    argparse.ArgumentParser.parse_args = arguments  # type: ignore[assignment]
    sys.meta_path.append(Missing())
    os.chdir(SCRIPT.parent)
    sys.argv = [str(SCRIPT), str(PHOTOGRAPH)]
    try:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    except KeyboardInterrupt:  # how a camera ends an endless loop
        pass
    finally:
        np.savez(OUT, *outputs, nets=np.array(sorted(set(nets)), np.str_))


class Missing(MetaPathFinder, Loader):
    """Stands in for modules that are not installed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name[0] != "_" else None

    def create_module(self, spec: ModuleSpec) -> Any:
        return Anything(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


class Anything(types.ModuleType):
    """A module that is not there, and all that is asked of it."""

    __path__ = ()  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __iter__(self) -> Any:
        return iter((self, self))


main()
