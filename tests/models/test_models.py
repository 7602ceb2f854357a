"""The models: published parameter counts and shapes, settings, and the files they generate."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sparknet import Net, models
from sparknet.cli import main
from sparknet.dsl import NetParams
from sparknet.graph import Graph
from tests.dsl.nets import rebuilt
from tests.goldens import ROOT

ZOO = ROOT / "models"

PARAMETERS = {
    "alexnet": 60_965_224,
    "caffenet": 60_965_224,
    "cifar10_full": 89_578,
    "cifar10_quick": 145_578,
    "fcn": 134_432_597,
    "googlenet": 13_378_280,
    "lenet": 431_080,
    "lstm_text": 25_614_801,
    "mlp_tabular": 644_354,
    "mobilenet": 4_253_891,
    "mobilenet_ssd": 5_821_468,
    "resnet50": 25_610_269,
    "squeezenet": 1_235_496,
    "ssd300_vgg16": 26_285_486,
    "vgg16": 138_357_544,
}
"""All blobs, BatchNorm's running sums among them."""

SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "alexnet": {
        "conv1": (96, 55, 55), "pool1": (96, 27, 27), "conv2": (256, 27, 27),
        "pool2": (256, 13, 13), "pool5": (256, 6, 6), "fc6": (4096,), "fc8": (1000,),
    },
    "caffenet": {"norm1": (96, 27, 27), "norm2": (256, 13, 13), "pool5": (256, 6, 6)},
    "cifar10_full": {"pool1": (32, 16, 16), "pool2": (32, 8, 8), "pool3": (64, 4, 4)},
    "cifar10_quick": {"pool3": (64, 4, 4), "ip1": (64,), "ip2": (10,)},
    "fcn": {
        "conv1_1": (64, 698, 698), "pool5": (512, 22, 22), "score_fr": (21, 16, 16),
        "upscore": (21, 544, 544), "score": (21, 500, 500),
    },
    "googlenet": {
        "pool1/3x3_s2": (64, 56, 56), "pool2/3x3_s2": (192, 28, 28),
        "inception_3a/output": (256, 28, 28), "inception_3b/output": (480, 28, 28),
        "inception_4a/output": (512, 14, 14), "inception_4b/output": (512, 14, 14),
        "inception_4c/output": (512, 14, 14), "inception_4d/output": (528, 14, 14),
        "inception_4e/output": (832, 14, 14), "inception_5a/output": (832, 7, 7),
        "inception_5b/output": (1024, 7, 7), "loss1/ave_pool": (512, 4, 4),
        "loss2/ave_pool": (528, 4, 4), "pool5/7x7_s1": (1024, 1, 1),
    },
    "lenet": {
        "conv1": (20, 24, 24), "pool1": (20, 12, 12), "conv2": (50, 8, 8), "pool2": (50, 4, 4),
        "ip1": (500,), "ip2": (10,),
    },
    "mlp_tabular": {"data": (1000,), "ip1": (512,), "ip2": (256,), "ip3": (2,)},
    "mobilenet": {
        "conv1": (32, 112, 112), "conv2_2/sep": (128, 56, 56), "conv3_2/sep": (256, 28, 28),
        "conv4_2/sep": (512, 14, 14), "conv5_6/sep": (1024, 7, 7), "conv6/sep": (1024, 7, 7),
        "pool6": (1024, 1, 1), "fc7": (1000, 1, 1),
    },
    "mobilenet_ssd": {
        "conv11": (512, 19, 19), "conv13": (1024, 10, 10), "conv14_2": (512, 5, 5),
        "conv15_2": (256, 3, 3), "conv16_2": (256, 2, 2), "conv17_2": (128, 1, 1),
        "mbox_loc": (4 * 1917,), "mbox_priorbox": (2, 4 * 1917),
    },
    "resnet50": {
        "conv1": (64, 112, 112), "pool1": (64, 56, 56), "res2c": (256, 56, 56),
        "res3d": (512, 28, 28), "res4f": (1024, 14, 14), "res5c": (2048, 7, 7),
        "pool5": (2048, 1, 1), "fc1000": (1000,),
    },
    "squeezenet": {
        "conv1": (64, 113, 113), "pool1": (64, 56, 56), "fire3/concat": (128, 56, 56),
        "fire5/concat": (256, 28, 28), "fire9/concat": (512, 14, 14), "conv10": (1000, 14, 14),
        "pool10": (1000, 1, 1),
    },
    "ssd300_vgg16": {
        "conv4_3_norm": (512, 38, 38), "fc7": (1024, 19, 19), "conv6_2": (512, 10, 10),
        "conv7_2": (256, 5, 5), "conv8_2": (256, 3, 3), "conv9_2": (256, 1, 1),
        "mbox_loc": (4 * 8732,), "mbox_conf": (21 * 8732,), "mbox_priorbox": (2, 4 * 8732),
    },
    "vgg16": {
        "pool1": (64, 112, 112), "pool3": (256, 28, 28), "pool5": (512, 7, 7), "fc8": (1000,),
    },
}  # fmt: skip
"""Without the batch."""


@cache
def net(name: str) -> NetParams:
    return models.net(name)


@cache
def graph(name: str, phase: str = "train") -> Graph:
    return net(name).graph(phase)


def learned(name: str) -> int:
    """Parameters without BatchNorm's running sums: what papers count."""
    sums = sum(node.param_count for node in graph(name).nodes if node.type == "BatchNorm")
    return graph(name).param_count - sums


def test_names_and_folders_agree():
    written = sorted(path.name for path in ZOO.iterdir())
    assert list(models.NAMES) == written
    assert written == sorted(PARAMETERS)


@pytest.mark.parametrize("name", models.NAMES)
def test_committed_files_are_the_generated_ones(name):
    made = models.files(name, Path("models") / name)
    assert {path.name for path in (ZOO / name).iterdir()} == set(made)
    for file, text in made.items():
        assert (ZOO / name / file).read_text(encoding="utf-8") == text, (
            "run python -m sparknet.models"
        )


@pytest.mark.parametrize("name", models.NAMES)
def test_parameter_counts(name):
    assert graph(name).param_count == graph(name, "test").param_count == PARAMETERS[name]
    assert f"{PARAMETERS[name]:,}" in (ZOO / name / "README.md").read_text()


@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("phase", ["train", "test"])
def test_shapes(name, phase):
    blobs = graph(name, phase).blobs
    assert {blob: blobs[blob][1:] for blob in SHAPES[name]} == SHAPES[name]


@pytest.mark.parametrize("name", models.NAMES)
def test_phases_and_round_trips(name):
    types = {phase: [n.type for n in graph(name, phase).nodes] for phase in ("train", "test")}
    judge, loss = (
        ("DetectionEvaluate", "MultiBoxLoss") if "ssd" in name else ("Accuracy", "SoftmaxWithLoss")
    )
    assert judge not in types["train"]
    assert judge in types["test"]
    assert loss in types["train"]
    assert rebuilt(net(name).to_source()) == net(name)
    assert NetParams.load(ZOO / name / "net.prototxt") == net(name)


@pytest.mark.parametrize("name", models.NAMES)
def test_each_readme_says_what_is_known(name):
    text = (ZOO / name / "README.md").read_text()
    assert text.startswith("# ")
    for heading in ("Origin", "Input", "Parameters", "Reaches"):
        assert f"| {heading} |" in text


@pytest.mark.parametrize("name", models.NAMES)
def test_nets_of_pictures_say_what_becomes_of_bytes(name):
    if len(graph(name).blobs["data"]) != 4:
        return
    how = models.preprocessing(name)
    text = " ".join((ZOO / name / "README.md").read_text().split())
    if how is None:
        assert "take it with `--" in text
        assert "--mean-file " in text
    else:
        assert "net.sparknet.json" in text
        assert how.mean is not None or how.scale != 1


@pytest.mark.parametrize("name", ["alexnet", "caffenet"])
def test_image_files_of_imagenet_as_the_zoos_files_cut_them(name, tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture = np.random.default_rng(0).integers(0, 256, (256, 256, 3), np.uint8)
    image.fromarray(picture).save(tmp_path / "one.png")
    (tmp_path / "net.prototxt").write_text(
        """input: "data" input_shape { dim: 1 dim: 3 dim: 227 dim: 227 }
        layer { name: "same" type: "Power" bottom: "data" top: "same" }"""
    )
    (tmp_path / "net.sparknet.json").write_text((ZOO / name / "net.sparknet.json").read_text())
    Net(tmp_path / "net.prototxt").save(tmp_path / "w.caffemodel")
    model, weights = (str(tmp_path / one) for one in ("net.prototxt", "w.caffemodel"))
    words = ["features", "-model", model, "-weights", weights, "-blobs", "same", "-out"]
    assert main([*words, str(tmp_path / "o.npy"), str(tmp_path / "one.png")]) == 0
    cut = picture[14:241, 14:241, ::-1].astype(np.float32) - np.float32((104, 117, 123))
    np.testing.assert_allclose(np.load(tmp_path / "o.npy")[0], cut.transpose(2, 0, 1), atol=1e-3)


def test_published_counts_without_running_sums():
    assert learned("resnet50") == 25_557_032 + 64  # and the bias that the authors' conv1 has
    assert learned("mobilenet") == 4_231_976
    heads = [n for n in graph("googlenet").nodes if n.name.startswith(("loss1/", "loss2/"))]
    assert learned("googlenet") - sum(n.param_count for n in heads) == 6_998_552


@pytest.mark.parametrize("name", models.NAMES)
def test_a_solver_carries_its_net(name):
    made = models.solver(name)
    assert made.net_param == net(name).to_proto()
    assert made.snapshot_prefix == name
    assert models.about(name).endswith(".")
