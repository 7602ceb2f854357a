"""The flags of images: `predict`, `features` and `train` do what Net does by keyword."""

import json
from pathlib import Path

import numpy as np
import pytest

from sparknet import Net
from sparknet.cli import main
from sparknet.proto import read_model, write_text
from tests.loaders.random_images import files
from tests.net.test_images import ECHO, MEAN, by_caffe, deploy

pytest.importorskip("PIL")


@pytest.fixture
def model(tmp_path):
    net = Net(deploy(), seed=1)
    net.save(tmp_path / "small.caffemodel")
    write_text(tmp_path / "deploy.prototxt", net.described)
    return ["-model", str(tmp_path / "deploy.prototxt"), "-weights", f"{tmp_path}/small.caffemodel"]


WAYS = [
    (
        ["--resize", "32x32", "--crop", "24", "--mean-value", "104,117,123"],
        {"resize": 32, "crop": 24, "mean": MEAN},
    ),
    (
        ["--resize=30x40", "--resize-mode=shorter", "--interpolation=pil.bicubic", "--crop=24x24"],
        {"resize": (30, 40), "resize_mode": "shorter", "interpolation": "pil.bicubic", "crop": 24},
    ),
    (
        ["--resize=24", "--resize-mode=fit", "--pad=9,8,7", "--color=rgb", "--std=2,3,4"],
        {"resize": 24, "resize_mode": "fit", "pad": (9, 8, 7), "color": "rgb", "std": (2, 3, 4)},
    ),
    (
        ["--upright", "--exact", "--scale=0.5", "--mean-file=MEAN"],
        {"upright": True, "exact": True, "scale": 0.5, "mean": ""},
    ),
]


@pytest.mark.parametrize(("flags", "keywords"), WAYS, ids=["exact", "shorter", "fit", "upright"])
def test_predict_and_features_score_as_net(flags, keywords, model, tmp_path):
    (tmp_path / "images").mkdir()
    paths = list(files(tmp_path / "images"))
    if "mean" in keywords and isinstance(keywords["mean"], str):
        np.save(tmp_path / "mean.npy", np.full((3, 28, 28), 100, np.float32))
        keywords = {**keywords, "mean": str(tmp_path / "mean.npy"), "crop": 24}
        flags = [flag.replace("MEAN", str(tmp_path / "mean.npy")) for flag in flags]
        flags = [*flags, "--crop=24"]
    words = [*model, *flags, "--batch=7"]
    out = str(tmp_path / "out.json")
    images = str(tmp_path / "images")
    assert main(["predict", *words, "--top=0", "--json", "--out", out, images]) == 0
    lines = Path(out).read_text().splitlines()
    got = [json.loads(line)["outputs"]["prob"] for line in lines]
    net = Net(model[1], model[3], **keywords)
    wanted = net.forward({"data": [str(path) for path in paths]})["prob"]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
    if keywords.get("resize") == 32:
        np.testing.assert_allclose(got, by_caffe(paths, net), rtol=0, atol=1e-5)
    features = str(tmp_path / "prob.npy")
    assert main(["features", *words, "-blobs=prob", f"-out={features}", images]) == 0
    np.testing.assert_allclose(np.load(features), wanted, rtol=0, atol=1e-6)


def test_train_on_a_folder(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / "images" / name).mkdir(parents=True)
        list(files(tmp_path / "images" / name))
    solver = tmp_path / "solver.prototxt"
    solver.write_text(
        f"base_lr: 0.001 lr_policy: 'fixed' snapshot_prefix: '{tmp_path}/s' random_seed: 1 "
        f"net_param {{ {ECHO % ('Data', '')} }}"
    )
    words = ["train", "-solver", str(solver), "--data", str(tmp_path / "images")]
    out = str(tmp_path / "out.caffemodel")
    words += ["-iterations=3", "--json", f"--out={out}"]
    flags = ["--resize=20", "--resize-mode=shorter", "--crop=16", "--mean-value=104,117,123"]
    assert main([*words, *flags, "--mirror"]) == 0
    # 16 x 16 x 3 inputs of two outputs.
    assert read_model(out).layer_arrays("ip")[0].shape == (2, 768)
    assert main([*words, "--crop=16", "--mean-value=1", "--mean-file=x"]) == 2
    assert "give --mean-file or --mean-value, not both" in capsys.readouterr().err
    assert main([*words, "--crop=16", "--interpolation=cv2.linea"]) == 1
    assert "did you mean 'cv2.linear'" in capsys.readouterr().err
