"""The description of preprocessing: what it refuses, and its text."""

import json

import numpy as np
import pytest

from sparknet.errors import FileError, SpecError
from sparknet.loaders.preprocessing import Preprocessing

EVERYTHING = {
    "resize": (256, 300),
    "resize_mode": "fit",
    "pad": (1.0, 2.0, 3.0),
    "interpolation": "pil.bicubic",
    "crop": 224,
    "color": "rgb",
    "upright": True,
    "exact": True,
    "mean": (104, 117, 123.5),
    "scale": 0.017,
    "std": (1, 2, 3),
    "mirror": True,
}


@pytest.mark.parametrize("mean", [(104, 117, 123.5), 7, "image"])
def test_text_makes_an_equal_description(mean):
    if mean == "image":
        mean = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    how = Preprocessing(**{**EVERYTHING, "mean": mean})
    assert how.crop == (224, 224)
    again = Preprocessing.from_json(how.to_json())
    assert again == how
    assert hash(again) == hash(how)
    np.testing.assert_array_equal(np.asarray(again.mean), np.asarray(how.mean))
    assert Preprocessing.from_json("{}") == Preprocessing() != how
    assert json.loads(Preprocessing().to_json()) == {}
    assert len(repr(how)) < 300


def test_keywords_that_are_none_say_nothing():
    assert Preprocessing.of({"crop": None, "mean": None}) is None
    assert Preprocessing.of({"crop": 3, "mean": None}) == Preprocessing(crop=(3, 3))
    with pytest.raises(SpecError, match="no keyword 'croop'; did you mean 'crop'"):
        Preprocessing.of({"croop": 3})


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"resize": 0}, "resize is 0: a height and a width"),
        ({"resize": (3, 4, 5)}, r"resize is \(3, 4, 5\)"),
        ({"crop": 2.5}, "crop is 2.5"),
        ({"crop": True}, "crop is True"),
        ({"resize": (1 << 20, 1)}, "up to 16384"),
        ({"resize_mode": "longer"}, "resize_mode is 'longer', not one of 'exact', 'shorter'"),
        ({"interpolation": "cv2.liner"}, "did you mean 'cv2.linear'"),
        ({"interpolation": 3}, "interpolation is 3, not one of"),
        ({"color": "RGBA"}, "color is 'RGBA'"),
        ({"mean": "abc.npy"}, "abc.npy"),
        ({"mean": (1, float("nan"), 2)}, "mean is"),
        ({"mean": np.zeros((2, 3))}, "mean is 2 x 3: channels x height x width"),
        ({"scale": "big"}, "scale is 'big': one number"),
        ({"std": (1, 0, 1)}, "numbers above 0"),
        ({"mirror": "never"}, "mirror is 'never'"),
    ],
)
def test_bad_settings_are_refused_by_name(setting, told):
    with pytest.raises((SpecError, FileError), match=told):
        Preprocessing(**setting)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"crop": 0}',
        '{"other": 1}',
        '{"mean": "/etc/passwd"}',
        '{"mean": {"shape": [1, 1000000, 1000000], "float32": "AAAA"}}',
        '{"mean": {"shape": [1, 1, 1], "float32": "A"}}',
        '{"mean": {"shape": "abc", "float32": "AAAA"}}',
        '{"mean": {}}',
        "[" * 100_000,
    ],
)
def test_damaged_text_is_one_sentence(text):
    with pytest.raises(FileError, match=r"x\.json: is no description of pictures"):
        Preprocessing.from_json(text, "x.json")


def test_a_mean_file(tmp_path):
    image = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    np.save(tmp_path / "mean.npy", image)
    how = Preprocessing(mean=tmp_path / "mean.npy")
    assert how.mean_image is not None
    assert how.mean_values == ()
    np.testing.assert_array_equal(how.mean_image, image)
    np.save(tmp_path / "values.npy", image.mean((1, 2)))
    values = Preprocessing(mean=str(tmp_path / "values.npy"))
    assert values.mean_image is None
    assert len(values.mean_values) == 3
