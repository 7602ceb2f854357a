"""Weights out of files by the names of layers: nothing is left out without a word."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

import sparknet
from sparknet import Net, WeightCollection, caffe
from sparknet.cli import main
from sparknet.errors import WeightsError
from sparknet.proto import parse_net, write_text
from sparknet.weights import WeightsWarning
from tests.net import public_caffe

INPUT = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 2 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
"""


def net_text(*layers: str) -> str:
    """Inner products one after the other, and a loss."""
    blobs = ["data", *layers]
    chain = [
        f"""layer {{ name: "{top}" type: "InnerProduct" bottom: "{bottom}" top: "{top}"
          inner_product_param {{ num_output: 2 weight_filler {{ type: "gaussian" }} }} }}"""
        for bottom, top in pairwise(blobs)
    ]
    loss = f'layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "{blobs[-1]}" bottom: "label" }}'
    return INPUT + "".join(chain) + loss


def solver_text(*layers, **fields):
    more = " ".join(f"{name}: {value}" for name, value in fields.items())
    net = net_text(*layers)
    return f"base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 {more} net_param {{ {net} }}"


@pytest.fixture
def trained(tmp_path):
    """A file with weights of the layers one, two and three."""
    path = tmp_path / "trained.caffemodel"
    Net(net_text("one", "two", "three"), seed=7).save(path)
    return path


WAYS = {
    "Net": lambda path, layers: Net(net_text(*layers), path),
    "Net of a solver": lambda path, layers: Net(solver_text(*layers), path),
    "a solver's weights": lambda path, layers: Net(solver_text(*layers, weights=f"'{path}'")),
    "load": lambda path, layers: Net(net_text(*layers)).load(path),
    "another pycaffe": lambda path, layers: Net(net_text(*layers), path, backend=public_caffe),
    "sparknet.train": lambda path, layers: sparknet.train(
        solver_text(*layers),
        {"data": np.zeros((8, 2), np.float32), "label": np.zeros(8)},
        workers=1,
        weights=path,
        steps=0,
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("suffix", [".caffemodel", ".h5"])
def test_weights_of_no_layer_are_refused(way, suffix, tmp_path):
    path = tmp_path / f"trained{suffix}"
    Net(net_text("one", "two")).save(path)
    with pytest.raises(WeightsError) as caught:
        WAYS[way](path, ["four", "five"])
    message = str(caught.value)
    assert f"{path} has no weights for this layer nor any other of the net" in message
    assert "layer 'four'" in message
    assert "which has 'four', 'five'; it has 'one', 'two'" in message


@pytest.mark.parametrize("way", WAYS)
def test_fine_tuning_is_one_warning_that_names_both_sides(way, trained):
    with pytest.warns(WeightsWarning) as caught:
        WAYS[way](trained, ["one", "two", "fresh"])
    (warning,) = (one for one in caught if one.category is WeightsWarning)
    assert str(warning.message) == (
        f"{trained}: no weights for 'fresh', which keep those they begin with; "
        "nothing takes those of 'three'"
    )
    assert warning.filename == __file__


def test_what_matches_is_taken(trained):
    with pytest.warns(WeightsWarning):
        tuned = Net(net_text("one", "two", "fresh"), trained).get_weights()
    held = WeightCollection.load(trained)
    for name in ("one", "two"):
        np.testing.assert_array_equal(tuned[name][0].numpy(), held[name][0].numpy())


def test_a_net_that_finds_all_its_layers_says_nothing(trained, tmp_path):
    """Nothing of the net is wrong where the file has more layers, as for a net cut for features."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Net(net_text("one", "two"), trained)
        bare = 'layer { name: "relu" type: "ReLU" bottom: "data" top: "relu" }'
        Net(INPUT + bare, trained)  # no parameters, nothing to find


def test_two_files_complete_each_other(tmp_path):
    paths = [tmp_path / "one.caffemodel", tmp_path / "two.caffemodel"]
    for path, name in zip(paths, ("one", "two"), strict=True):
        Net(net_text(name)).save(path)
    listed = ",".join(map(str, paths))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Net(solver_text("one", "two", weights=f"'{listed}'"))
    with pytest.raises(WeightsError, match=r"two.caffemodel has no weights"):
        Net(solver_text("one", weights=f"'{listed}'"))


def test_many_names_are_cut_short(trained):
    fresh = [f"fresh{number}" for number in range(9)]
    with pytest.warns(WeightsWarning, match=r"'fresh0', .*'fresh4' and 4 more, which"):
        Net(net_text("one", *fresh), trained)


def test_pycaffe_copies_what_fits(trained):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = caffe.Net.from_proto(parse_net(net_text("one", "other")), caffe.TEST)
        net.copy_from(str(trained))


@pytest.mark.parametrize("verb", ["test", "time", "train", "predict"])
def test_on_the_command_line(verb, trained, tmp_path, capsys):
    dummies = "".join(
        f'layer {{ name: "{name}" type: "DummyData" top: "{name}" dummy_data_param '
        f"{{ shape {{ {dims} }} }} }}"
        for name, dims in (("data", "dim: 4 dim: 2"), ("label", "dim: 4"))
    )
    np.save(tmp_path / "data.npy", np.zeros((4, 2), np.float32))

    def words(*layers: str) -> list[str]:
        net, solver = tmp_path / "net.prototxt", tmp_path / "solver.prototxt"
        write_text(net, parse_net(dummies + net_text(*layers).removeprefix(INPUT)))
        solver.write_text(
            f"net: '{net}' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 "
            f"snapshot_prefix: '{tmp_path}/s' snapshot_after_train: false"
        )
        weighed = ["-weights", str(trained)]
        return {
            "test": ["test", "-model", str(net), *weighed, "-iterations", "1"],
            "time": ["time", "-model", str(net), *weighed, "-iterations", "1"],
            "train": ["train", "-solver", str(solver), *weighed],
            "predict": [
                *("predict", "-model", str(net), *weighed, str(tmp_path / "data.npy")),
                *("--outputs", "one"),
            ],
        }[verb]

    if verb != "predict":
        assert main(words("four")) == 1
        assert f"sparknet {verb}: layer 'four': {trained} has no weights" in capsys.readouterr().err
    assert main(words("one", "fresh")) == 0
    told = capsys.readouterr().err
    assert told.count("warning:") == 1
    assert f"sparknet {verb}: warning: {trained}: no weights for 'fresh', which keep" in told
