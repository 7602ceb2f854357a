"""`sparknet test`."""

import json

import numpy as np
import pytest

from sparknet.cli import main
from tests.cli.conftest import Task


def by_pycaffe(task: Task, batches: int) -> dict[str, float]:
    """Means as a pycaffe script would find them."""
    from sparknet import caffe

    net = caffe.Net(task.path("net.prototxt"), task.path("model.caffemodel"), caffe.TEST)
    found = [{name: float(v) for name, v in net.forward().items()} for _ in range(batches)]
    return {name: float(np.mean([one[name] for one in found])) for name in net.outputs}


def test_it_finds_what_pycaffe_finds(task, run):
    words = ["-model", task.path("net.prototxt"), "-weights", task.path("model.caffemodel")]
    done = run("test", *words, "-iterations=3")
    expected = by_pycaffe(task, 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"Loss: {expected['loss']:g}",
        f"accuracy = {expected['accuracy']:g}",
        f"loss = {expected['loss']:g} (* 1 = {expected['loss']:g} loss)",
    ]
    assert expected["accuracy"] > 0.8
    batches = done.stderr.splitlines()
    assert len(batches) == 6
    assert batches[-1].startswith("Batch 2, loss = ")


def test_json(task, capsys):
    words = ["--model", task.path("net.prototxt"), "--weights", task.path("model.caffemodel")]
    assert main(["test", *words, "--iterations", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = by_pycaffe(task, 4)
    assert found["iterations"] == 4
    assert found["outputs"] == pytest.approx(expected)
    assert found["loss"] == pytest.approx(expected["loss"])


@pytest.mark.parametrize("batch", [20, 7])
def test_records_from_elsewhere(batch, task, capsys, tmp_path):
    """Each record counts once, also where the last batch is smaller."""
    net = (task.folder / "net.prototxt").read_text()
    (tmp_path / "net.prototxt").write_text(net.replace("batch_size: 20", f"batch_size: {batch}"))
    np.savez(tmp_path / "data.npz", data=task.images, label=task.labels)
    np.save(tmp_path / "images.npy", task.images)
    np.save(tmp_path / "labels.npy", task.labels)
    model = ["-model", str(tmp_path / "net.prototxt"), "-weights", task.path("model.caffemodel")]
    arrays = [f"data={tmp_path}/images.npy", f"label={tmp_path}/labels.npy"]
    for source in ([task.path("lmdb")], [str(tmp_path / "data.npz")], arrays):
        assert main(["test", *model, "--json", "--data", *source]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["records"] == 60
        assert found["outputs"] == pytest.approx(by_pycaffe(task, 3), rel=1e-5)


def test_an_output_of_many_numbers(capsys, tmp_path):
    net = tmp_path / "net.prototxt"
    net.write_text(
        'layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 2 } '
        'data_filler { type: "constant" value: 3 } } }'
    )
    model = str(tmp_path / "m.caffemodel")
    from sparknet.caffe import TEST, Net

    Net(str(net), TEST).save(model)
    assert main(["test", "-model", str(net), "-weights", model, "-iterations", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == ["Loss: 0", *["x = 3"] * 4]
    assert main(["test", "-model", str(net), "-weights", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"] == {"x": [[3, 3], [3, 3]]}


def test_refusals(task, capsys):
    model = task.path("net.prototxt")
    assert main(["test", "-model", model]) == 2
    assert capsys.readouterr().err == "sparknet test: give -weights\n"
    assert main(["test", "-model", model, "-weights", task.path("modle.caffemodel")]) == 1
    assert capsys.readouterr().err.splitlines()[1] == (
        f"hint: did you mean '{task.path('model.caffemodel')}'?"
    )
    deploy = ["-model", task.path("deploy.prototxt"), "-weights", task.path("model.caffemodel")]
    assert main(["test", *deploy]) == 2
    error = capsys.readouterr().err.splitlines()
    assert error[0].endswith("deploy.prototxt: nothing feeds the net's inputs: data")
    assert error[1].startswith("hint: give --data")
    assert main(["test", *deploy, "--data", task.path("lmdb")]) == 1
    assert "neither a loss nor an accuracy" in capsys.readouterr().err


def test_the_net_by_position(task, capsys):
    net, weights = task.path("net.prototxt"), ["-weights", task.path("model.caffemodel")]
    printed = []
    for model in ([net], ["-model", net]):
        assert main(["test", *model, *weights, "-iterations", "2"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""
    assert main(["test", net, "-model", "other.prototxt", *weights]) == 2
    assert f"the net is {net} and other.prototxt: give NET or -model" in capsys.readouterr().err
