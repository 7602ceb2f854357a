"""`install` gives a cv2 without Caffe's importer what it lacks, and `uninstall` takes it away."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import sparknet.opencv
from sparknet.errors import MissingExtra, SpecError
from sparknet.opencv import dnn
from tests.opencv import nets

KINDS = ("Model", *(f"{kind}Model" for kind in ("Classification", "Detection", "Keypoints")))
KINDS += ("SegmentationModel", "TextRecognitionModel")


@pytest.fixture
def cv2(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """OpenCV 5 as far as `install` touches it: each function returns its name and arguments."""

    def theirs(name: str):
        return lambda *args, **kwargs: (name, *args)

    module = ModuleType("cv2")
    module.dnn = SimpleNamespace(readNet=theirs("readNet"), DNN_TARGET_CPU=0)
    for kind in KINDS:
        setattr(module.dnn, kind, theirs(kind))
        setattr(module, f"dnn_{kind}", theirs(kind))
    module.registered = {}
    module.dnn_registerLayer = module.registered.__setitem__
    module.dnn_unregisterLayer = module.registered.pop
    monkeypatch.setitem(sys.modules, "cv2", module)
    sparknet.opencv.install()
    yield module
    sparknet.opencv.uninstall()


def test_nets_of_caffe_are_ours_and_others_are_opencvs(cv2, tmp_path):
    prototxt, caffemodel = nets.write("chain", tmp_path)
    contents = [np.fromfile(name, np.uint8) for name in (prototxt, caffemodel)]
    made = [
        cv2.dnn.readNetFromCaffe(prototxt, caffemodel),
        cv2.dnn.readNetFromCaffe(prototxt=prototxt, caffeModel=caffemodel),
        cv2.dnn.readNetFromCaffe(*contents),
        cv2.dnn.readNetFromCaffe(*(array.tobytes() for array in contents)),
        cv2.dnn.readNet(prototxt, caffemodel),
        cv2.dnn.readNet(caffemodel, prototxt),
        cv2.dnn.readNet(model=caffemodel, config=prototxt),
        cv2.dnn.readNet("caffe", contents[1], contents[0]),
    ]
    blob = np.ones((1, 3, 9, 8), np.float32)
    for net in made:
        net.setInput(blob)
    first, *others = [net.forward() for net in made]
    for output in others:
        np.testing.assert_array_equal(output, first)
    assert cv2.dnn.readNet("net.onnx") == ("readNet", "net.onnx")
    assert cv2.dnn.readNet("net.pb", "net.pbtxt") == ("readNet", "net.pb", "net.pbtxt")


@pytest.mark.parametrize("kind", KINDS)
def test_models_take_our_nets_and_files(cv2, tmp_path, kind):
    prototxt, caffemodel = nets.write("chain", tmp_path)
    ours = getattr(dnn, kind)
    for make in (getattr(cv2.dnn, kind), getattr(cv2, f"dnn_{kind}")):
        assert isinstance(make(cv2.dnn.readNetFromCaffe(prototxt, caffemodel)), ours)
        assert isinstance(make(caffemodel, prototxt), ours)
        other = object()
        assert make(other) == (kind, other)
        assert make("net.onnx") == (kind, "net.onnx")


def test_a_registered_layer_is_known_to_both(cv2, tmp_path):
    cv2.dnn_registerLayer("Crop", nets.CenteredCrop)
    assert cv2.registered == {"Crop": nets.CenteredCrop}
    cv2.dnn_unregisterLayer("Crop")
    assert not cv2.registered


def test_numbers_that_opencv_5_dropped_are_there(cv2):
    assert cv2.dnn.DNN_BACKEND_HALIDE == 1
    assert cv2.dnn.DNN_TARGET_MYRIAD == 3


def test_uninstall_leaves_nothing(cv2):
    sparknet.opencv.uninstall()
    assert not hasattr(cv2.dnn, "readNetFromCaffe")
    assert not hasattr(cv2.dnn, "DNN_BACKEND_HALIDE")
    assert cv2.dnn.readNet("net.caffemodel") == ("readNet", "net.caffemodel")


def test_an_opencv_with_caffe_keeps_its_own(monkeypatch):
    module = ModuleType("cv2")
    module.dnn = SimpleNamespace(readNetFromCaffe=len)
    monkeypatch.setitem(sys.modules, "cv2", module)
    sparknet.opencv.install()
    assert module.dnn.readNetFromCaffe is len
    assert vars(module.dnn).keys() == {"readNetFromCaffe"}


def test_readnet_without_opencv_knows_caffe_alone():
    with pytest.raises(SpecError, match="not Caffe's files"):
        dnn.readNet("net.pb", "net.pbtxt")


def test_an_environment_without_opencv_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingExtra, match=r"'opencv-python': run pip install opencv-python$"):
        sparknet.opencv.install()
