"""What a training saves: the folder, the caffemodel and what lies beside it, and pickles."""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import sparknet
from sparknet.cli import main
from sparknet.errors import FileError, SpecError
from sparknet.net import Net
from sparknet.net.input_warnings import PreprocessingWarning
from sparknet.net.model_inputs import ModelInputs
from sparknet.spark.predict.model import SparkModel

pytest.importorskip("pyarrow")
NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [4, 3, 8, 8] } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
  include { phase: TRAIN } }
"""
SOLVER = f'base_lr: 0.01 lr_policy: "fixed" random_seed: 1 net_param {{ {NET} }}'
HOW = {"resize": 8, "color": "rgb", "mean": 128, "scale": 1 / 64}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Red ones and blue ones, which only the right order of colours tells apart."""
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("photographs")
    for name, channel in (("blue", 2), ("red", 0)):
        (folder / name).mkdir()
        for number in range(4):
            pixels = np.full((9, 10, 3), 100, np.uint8)
            pixels[..., channel] += 5 * number + 20
            image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def trained(photographs):
    return sparknet.train(SOLVER, str(photographs), steps=20, workers=1, **HOW)


def paths(folder: Path) -> list[str]:
    return [str(path) for path in sorted(folder.glob("*/*.png"))]


def of_folder(trained, path):
    trained.save(path / "model")
    return sparknet.load(path / "model")


def of_file(trained, path):
    trained.save(path / "new folder" / "x.caffemodel")
    return sparknet.load(path / "new folder" / "x.caffemodel")


def of_net(trained, path):
    trained.net.save(path / "x.caffemodel")
    return sparknet.load(path / "x.caffemodel")


def of_model(trained, path):
    SparkModel(trained.net).save(path / "model")
    return sparknet.load(SparkModel(path / "model"))


def of_pickle(trained, path):
    return pickle.loads(pickle.dumps(of_folder(trained, path)))


@pytest.mark.parametrize("way", [of_folder, of_file, of_net, of_model, of_pickle])
def test_what_was_trained_predicts(way, trained, photographs, tmp_path):
    expected = trained.net.forward({"data": np.array(paths(photographs))}, ["ip"])["ip"]
    assert (expected.argmax(1) == [0] * 4 + [1] * 4).all()
    (tmp_path / "new folder").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = way(trained, tmp_path)
        found = loaded.predict(paths(photographs), ["ip"])["ip"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert loaded.model.labels == ("blue", "red")


def test_the_command_line_writes_and_reads_folders(photographs, tmp_path, capsys):
    (tmp_path / "s.prototxt").write_text(SOLVER)
    command = ["train", str(tmp_path / "s.prototxt"), "--data", str(photographs), "--steps", "20"]
    command += ["--resize", "8", "--color", "rgb", "--mean-value", "128", "--scale", "0.015625"]
    out, snapshots = str(tmp_path / "model"), ["--snapshots", str(tmp_path / "snapshots")]
    snapshots += ["--snapshot-every", "1"]
    assert main([*command, *snapshots, "--out", out]) == 0
    assert {path.name for path in Path(out).iterdir()} == {
        *("model.json", "net.prototxt", "weights.caffemodel")
    }
    capsys.readouterr()
    assert main(["predict", out, str(photographs), "--top", "1", "--format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["outputs"]["prob"][0]["label"] for line in lines] == ["blue"] * 4 + ["red"] * 4
    assert main([*command, "--out", "x.onnx"]) == 2
    assert main(["show", out]) == 0
    again = tmp_path / "again.caffemodel"
    assert main(["convert", "snapshot", str(tmp_path / "snapshots"), str(again)]) == 0
    said = ModelInputs.beside(again)
    assert said is not None
    assert said.preprocessing == SparkModel(out).net.preprocessing


def test_a_bare_file_says_what_it_does_not_know(trained, photographs, tmp_path, capfd):
    trained.net.save(tmp_path / "x.caffemodel")
    (tmp_path / "x.sparknet.json").unlink()
    said = "nothing says what happens to the pictures for 'data': they become 8 x 8, BGR, from 0"
    loaded = sparknet.load(tmp_path / "x.caffemodel")
    with pytest.warns(PreprocessingWarning, match=said):
        loaded.predict(paths(photographs), ["ip"])
    with pytest.warns(PreprocessingWarning, match=said):
        Net(NET, tmp_path / "x.caffemodel").forward({"data": paths(photographs)}, ["ip"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.predict(paths(photographs), ["ip"])  # once
        sparknet.load(tmp_path / "x.caffemodel", **HOW).predict(paths(photographs), ["ip"])
    main(["predict", str(tmp_path / "x.caffemodel"), *paths(photographs)])
    assert said in capfd.readouterr().err


def test_a_net_of_pytorch_says_it_too(trained, photographs, tmp_path, capfd):
    pytest.importorskip("onnx")
    from sparknet.onnx import write_model

    write_model(tmp_path / "x.onnx", Net(NET, trained.weights))
    assert main(["predict", str(tmp_path / "x.onnx"), *paths(photographs)]) == 0
    assert "they become 8 x 8, BGR, from 0 to 255, without a mean" in capfd.readouterr().err


@pytest.mark.parametrize("make", [sparknet.load, SparkModel])
def test_random_weights_predict_only_if_asked(make, tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    for source in (tmp_path / "net.prototxt", NET):
        with pytest.raises(SpecError, match=r"net '' has no weights, .* or random=True"):
            make(source)
    make(NET, random=True)
    make(NET, Net(NET).get_weights())
    make(Net(NET))


def test_weights_of_a_folder(trained, photographs, tmp_path):
    trained.save(tmp_path / "model")
    net = Net(NET, tmp_path / "model")
    np.testing.assert_array_equal(net.get_weights().flat, trained.weights.flat)
    again = sparknet.train(
        SOLVER.replace("base_lr: 0.01", "base_lr: 1e-9"),
        *(str(photographs),),
        weights=tmp_path / "model",
        steps=1,
        **HOW,
    )
    np.testing.assert_allclose(again.weights.flat, trained.weights.flat, atol=1e-6)


def test_damaged_and_other_folders(trained, tmp_path):
    trained.save(tmp_path / "model")
    with pytest.raises(FileError, match=r"x.pt: a model is saved as a folder, or as one of"):
        trained.save(tmp_path / "x.pt")
    with (tmp_path / "model" / "weights.caffemodel").open("ab") as file:
        file.write(b"x")
    with pytest.raises(FileError, match=r"weights.caffemodel: has \d+ bytes; \d+ were saved"):
        sparknet.load(tmp_path / "model")
    (tmp_path / "model" / "model.json").write_text("{}")
    with pytest.raises(FileError, match="model: is no saved model"):
        SparkModel(tmp_path / "model")


def test_a_net_pickles_with_its_solver(trained):
    again = pickle.loads(pickle.dumps(trained.net))
    weights = trained.net.get_weights()
    np.testing.assert_array_equal(again.get_weights().flat, weights.flat)
    assert (again.preprocessing, again.labels) == (trained.net.preprocessing, ("blue", "red"))
    data = np.arange(8 * 3 * 9 * 10, dtype=np.uint8).reshape(8, 3, 9, 10), np.arange(8) % 2
    pair = trained.net.copy(), again
    for net in pair:
        net.set_training_data(data)
    assert pair[0].train(3) == pair[1].train(3)
