"""Blobs of images, boxes and models hold what OpenCV 4 computed (record.py)."""

import numpy as np
import pytest

from sparknet.errors import ArgumentError, FileError, SettingError, SpecError
from sparknet.opencv import dnn
from tests.opencv import images, nets
from tests.opencv.test_net import RECORDED, assert_close

COMPUTED = images.computed(dnn)


@pytest.mark.parametrize("name", COMPUTED)
def test_an_image_or_a_box_is_as_opencv_has_it(name):
    expected = RECORDED[f"images/{name}"]
    assert COMPUTED[name].dtype == expected.dtype
    assert_close(COMPUTED[name], f"images/{name}")


def test_models_say_what_opencvs_say(tmp_path):
    results = images.modelled(dnn, lambda name: dnn.readNetFromCaffe(*nets.write(name, tmp_path)))
    for name, value in results.items():
        expected = RECORDED[f"images/{name}"]
        if expected.dtype.kind == "U":
            assert value.tolist() == expected.tolist(), name
        else:
            assert_close(value, f"images/{name}")


def test_an_image_may_lie_anywhere_in_memory():
    image = images.picture(20, 30)
    flipped = np.asfortranarray(image[::-1])[:, ::2]
    expected = dnn.blobFromImage(np.ascontiguousarray(flipped), 0.5, (9, 7), (1, 2, 3))
    np.testing.assert_array_equal(dnn.blobFromImage(flipped, 0.5, (9, 7), (1, 2, 3)), expected)


@pytest.mark.parametrize(
    ("threshold", "more", "expected"),
    [
        (0.2, (), [3, 0, 5]),
        (0.8, (), [3, 0, 2, 5]),
        (0.9, (), [3, 0, 1, 2, 5]),
        (0.8, (1.0, 3), [3, 0]),
        (0.9, (0.5,), [3, 0, 5]),
    ],
)
def test_turned_boxes_suppress_each_other(threshold, more, expected):
    """What OpenCV 4.14 returned; the fifth box lies within the third and the fourth."""
    boxes = [((50, 40), (40, 20), 30), ((52, 41), (38, 22), 25), ((90, 40), (30, 30), 0)]
    boxes += [((92, 42), (28, 28), 45), ((90, 40), (10, 10), 80), ((20, 90), (60, 8), -60)]
    boxes += [((20, 90), (8, 60), 30)]
    scores = [0.9, 0.8, 0.7, 0.95, 0.6, 0.5, 0.4]
    assert dnn.NMSBoxesRotated(boxes, scores, 0.3, threshold, *more).tolist() == expected
    assert dnn.NMSBoxesRotated([], [], 0.3, threshold) == ()


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: dnn.blobFromImage(None), ArgumentError, "height x width"),
        (lambda: dnn.blobFromImages([]), ArgumentError, "at least one"),
        (
            lambda: dnn.blobFromImage(np.zeros((2, 2, 3), "u1"), 2.0, ddepth=0),
            ArgumentError,
            "CV_8U",
        ),
        (lambda: dnn.imagesFromBlob(np.zeros((2, 3))), ArgumentError, "4 axes"),
        (lambda: dnn.readNet("net.onnx"), SpecError, "not Caffe's"),
        (lambda: dnn.readNetFromCaffe("nowhere.prototxt"), FileError, "nowhere.prototxt"),
        (lambda: dnn.readNetFromCaffe(b"name: 'x'"), SpecError, "has no layers"),
    ],
)
def test_what_cannot_be_done_is_said(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_a_model_asks_for_what_it_lacks(tmp_path):
    net = dnn.readNetFromCaffe(*nets.write("chain", tmp_path))
    with pytest.raises(SpecError, match="DetectionOutput, not Softmax"):
        dnn.DetectionModel(net).setInputSize(20, 20).detect(images.picture())
    reader = dnn.TextRecognitionModel(*nets.write("letters", tmp_path))
    with pytest.raises(SettingError, match="setVocabulary"):
        reader.recognize(images.picture())
    reader.setVocabulary("abcde")
    with pytest.raises(SettingError, match="setDecodeType"):
        reader.recognize(images.picture())
    size_unknown = dnn.Model(dnn.readNetFromCaffe(*nets.write("two_inputs", tmp_path)))
    with pytest.raises(SettingError, match="setInputSize"):
        size_unknown.predict(images.picture())
