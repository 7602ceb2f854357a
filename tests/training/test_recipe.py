"""Fine-tuning: a net of a .onnx gets a new head, and layers learn at their own rates."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import sparknet
from sparknet import Net
from sparknet.cli import main
from sparknet.errors import SettingError
from sparknet.loaders import Preprocessing
from sparknet.net.model_inputs import ModelInputs
from sparknet.net.recipe import Recipe, multiply, replace_head
from sparknet.onnx import read_model, write_model
from sparknet.proto import read_model as read_weights
from sparknet.spark import SparkModel
from tests.onnx.graphs import Array, draw, graph, node, onnx

NODES = [
    node("Conv", "x conv.weight", "a", pads=[1, 1, 1, 1]),
    node("BatchNormalization", "a bn.scale bn.bias bn.mean bn.var", "b"),
    node("Relu", "b", "c"),
    node("GlobalAveragePool", "c", "d"),
    node("Flatten", "d", "e"),
    node("Gemm", "e fc.weight fc.bias", "f", transB=1),
    node("Softmax", "f", axis=1),
]


@pytest.fixture
def model(tmp_path):
    return write_recipe(tmp_path)


def write_recipe(folder: Path) -> Path:
    constants = {
        "conv.weight": draw(4, 3, 3, 3),
        "bn.scale": np.float32([1, 2, 1, 2]),
        "bn.bias": draw(4),
        "bn.mean": draw(4, seed=1),
        "bn.var": np.float32([1, 2, 3, 4]),
        "fc.weight": draw(7, 4),
        "fc.bias": draw(7),
    }
    path = folder / "model.onnx"
    onnx.save(graph(NODES, {"x": ["n", 3, 6, 6]}, constants=constants), str(path))
    return path


def rows(count: int = 96) -> tuple[Array, Array]:
    """Pictures whose class is the channel that is bright."""
    labels = np.arange(count) % 3
    pictures = draw(count, 3, 6, 6) * 0.1
    pictures[np.arange(count), labels] += 2
    return pictures, labels


def test_a_new_head_learns_and_keeps_what_was_learned(model):
    x, labels = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained = sparknet.train(
            model,
            {"x": x, "label": labels},
            head=3,
            lr_mult={"conv": 0},
            steps=300,
            validation={"x": x, "label": labels},
        )
    assert trained.outcome.metrics["accuracy"] > 0.9
    made = {name: blobs[0].data for name, blobs in trained.net.net.params.items()}
    before = read_model(model).by_name()
    assert made.keys() == before.keys() - {"fc"} | {"head"}
    assert made["head"].shape == (3, 4)
    np.testing.assert_array_equal(made["conv"], before["conv"][0])
    scale = next(name for name in before if before[name][0].shape == (4,) and "scale" in name)
    assert not np.array_equal(made[scale], before[scale][0])


def test_rates_are_products_of_what_fits(model):
    def rates(**keywords):
        solver, weights = Recipe(**keywords).applied(str(model), None)
        assert weights == str(model)
        found = Net(solver).described.layer
        return {one.name: [p.lr_mult for p in one.param] for one in found if one.param}

    assert rates(head=2)["head"] == [10, 10]
    named = rates(head=2, lr_mult={"*": 0.5, "c*": 0.5})
    assert (named["head"], named["conv"]) == ([0.5, 0.5], [0.25])
    assert rates(head=2, lr_mult={"head": 3})["head"] == [3, 3]


def test_a_batch_and_a_solver_of_ones_own(model):
    solver, _ = Recipe(head=2).applied(model, None)
    assert (Net(solver).batch_size, solver.base_lr) == (32, np.float32(0.001))
    asked = {"x": (8, 3, 6, 6)}
    own = sparknet.proto.caffe_pb2.SolverParameter(net=str(model), base_lr=0.5, lr_policy="fixed")
    solver, _ = Recipe(head=2, shapes=asked).applied(own, None)
    assert (Net(solver).batch_size, solver.base_lr) == (8, 0.5)


def test_a_net_that_has_a_loss_keeps_it():
    net = Net("models/lenet/net.prototxt").described
    layers = [layer.name for layer in net.layer]
    replace_head(net, 5)
    assert [layer.name for layer in net.layer] == [
        "head" if name == "ip2" else name for name in layers
    ]


def test_what_does_not_fit_is_refused(model):
    with pytest.raises(SettingError, match=r"lr_mult names 'cnov', which no layer .*'fc'"):
        multiply(read_model(model).net, "cnov", 2)
    with pytest.raises(SettingError, match="head must be at least 1, not 0"):
        sparknet.train(model, rows(), head=0)
    with pytest.raises(SettingError, match="lr_mult must be a dict of numbers from 0 on"):
        sparknet.train(model, rows(), head=2, lr_mult={"conv": -1})
    with pytest.raises(SettingError, match="this Net is made already: give head"):
        Recipe(head=2).applied(Net("models/lenet/net.prototxt"), None)


def test_a_head_in_place_of_all_that_has_learned_is_refused(tmp_path):
    path = tmp_path / "one.onnx"
    constants = {"fc.weight": draw(7, 4), "fc.bias": draw(7)}
    gemm = node("Gemm", "x fc.weight fc.bias", "y", transB=1)
    onnx.save(graph([gemm], {"x": ["n", 4]}, constants=constants), str(path))
    with pytest.raises(SettingError, match="in place of 'fc' leaves nothing of what the net has"):
        sparknet.train(path, (draw(8, 4), np.arange(8) % 3), head=3)


def test_the_names_of_a_folders_classes_are_kept(tmp_path):
    """In the net, in a .onnx and in a saved model; another head has other classes."""
    image = pytest.importorskip("PIL.Image")
    pictures, labels = rows(12)
    names = ("blue", "green", "red")
    for number, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        folder = tmp_path / "pictures" / names[label]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.uint8(np.clip(picture.transpose(1, 2, 0) * 100, 0, 255))
        image.fromarray(pixels[:, :, ::-1].copy()).save(folder / f"{number}.png")
    how = {"head": 3, "scale": 0.01, "steps": 60, "seed": 1}
    trained = sparknet.train(
        write_recipe(tmp_path), tmp_path / "pictures", lr_mult={"conv": 0}, **how
    )
    assert trained.net.labels == names
    write_model(tmp_path / "tuned.onnx", trained.net)
    SparkModel(trained.net).save(tmp_path / "tuned.caffemodel")
    for suffix in ("onnx", "caffemodel"):
        model = sparknet.load(tmp_path / f"tuned.{suffix}")
        (found,) = model.predict(np.float32(pictures[:3] * 100), top=1).values()
        assert [best[0]["label"] for best in found] == [0, 1, 2]
        assert [best[0]["name"] for best in found] == list(names)
        other = model.predict(np.float32(pictures[:1] * 100), top=1, labels=["a", "b", "c"])
        assert next(iter(other.values()))[0][0]["name"] == "a"
    again = sparknet.train(tmp_path / "tuned.onnx", rows(), head=3, steps=1)
    assert again.net.labels == ()


def test_on_the_command_line(model, tmp_path):
    x, labels = rows()
    np.savez(tmp_path / "rows.npz", x=x, label=labels)
    out = tmp_path / "tuned.caffemodel"
    words = f"train -model {model} --head 3 --lr-mult conv=0 --data {tmp_path}/rows.npz --steps 3"
    for flag, how in (("--scale=0.5", Preprocessing(scale=0.5)), ("--steps=3", None)):
        assert main([*words.split(), flag, "--out", str(out)]) == 0
        assert (ModelInputs.beside(out) or ModelInputs()).preprocessing == how
    found = read_weights(out).by_name()
    assert found["head"][0].shape == (3, 4)
    np.testing.assert_array_equal(found["conv"][0], read_model(model).by_name()["conv"][0])


def test_images_are_made_as_the_file_says(tmp_path):
    """What export put into the metadata holds for training, too, unless something else is asked."""
    how = Preprocessing(scale=1 / 256)
    net = Net("models/lenet/net.prototxt", preprocessing=how)
    path = tmp_path / "lenet.onnx"
    write_model(path, net)
    x = np.random.default_rng(0).integers(0, 256, (64, 1, 28, 28)).astype(np.uint8)
    given = {"data": x, "label": np.arange(64) % 2}
    trained = sparknet.train(path, given, head=2, steps=2)
    assert trained.net.preprocessing == how
    other = sparknet.train(path, given, head=2, steps=2, scale=1 / 128)
    assert other.net.preprocessing == Preprocessing(scale=1 / 128)
