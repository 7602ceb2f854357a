"""Old nets and solvers become what Caffe's upgrade tools make of them."""

import pytest

from sparknet.errors import LayerError, SpecError
from sparknet.proto import (
    UpgradeWarning,
    caffe_pb2,
    needs_upgrade,
    parse_net,
    parse_solver,
    parse_text,
    read_net,
    read_solver,
    read_text,
    solver_needs_upgrade,
    upgrade_net,
    upgrade_solver,
)
from tests.goldens import GOLDENS, cases

FOLDER = GOLDENS / "formats" / "upgrade"


def equal(got, want):
    """Field by field, presence included; nan equals nan."""
    return bool(
        got.SerializeToString(deterministic=True) == want.SerializeToString(deterministic=True)
    )


@cases("formats/upgrade")
def test_upgrades_as_caffe_does(case, recwarn):
    message_class = getattr(caffe_pb2, case["message"])
    given = read_text(FOLDER / f"{case['name']}.in.prototxt", message_class)
    before = given.SerializeToString(deterministic=True)
    upgrade = upgrade_net if case["message"] == "NetParameter" else upgrade_solver
    got = upgrade(given)
    assert equal(got, read_text(FOLDER / f"{case['name']}.out.prototxt", message_class))
    assert given.SerializeToString(deterministic=True) == before
    assert case["clean"] == (not [w for w in recwarn if w.category is UpgradeWarning])
    assert equal(upgrade(got), got) or "batchnorm" not in case["name"]


def test_files_are_upgraded_as_they_are_read():
    net = read_net(FOLDER / "v0_convnet.in.prototxt")
    assert equal(net, read_net(FOLDER / "v0_convnet.out.prototxt"))
    solver = read_solver(FOLDER / "solver_adagrad.in.prototxt")
    assert solver.type == "AdaGrad"


def test_what_needs_an_upgrade():
    current = parse_text('layer { type: "BatchNorm" param { } }', caffe_pb2.NetParameter)
    assert not needs_upgrade(current)
    for old in (
        "layers { }",
        'input: "x"',
        'layer { type: "BatchNorm" param { } param { } param { } }',
    ):
        assert needs_upgrade(parse_text(old, caffe_pb2.NetParameter))
    assert not solver_needs_upgrade(parse_solver('type: "Adam"'))
    old_solver = parse_text("solver_type: ADAM", caffe_pb2.SolverParameter)
    assert solver_needs_upgrade(old_solver)


def test_blobs_move_with_their_layers():
    net = parse_net(
        'input: "x" input_dim: 1 input_dim: 1 input_dim: 4 input_dim: 4'
        ' layers { layer { name: "p" type: "padding" pad: 1 } bottom: "x" top: "y" }'
        ' layers { layer { name: "c" type: "conv" blobs { data: 1 data: 2 } blobs { data: 3 } }'
        ' bottom: "y" top: "z" }'
        ' layers { layer { name: "i" type: "innerproduct" blobs { double_data: 4 diff: 5 } }'
        ' bottom: "z" top: "w" }'
    )
    assert [layer.name for layer in net.layer] == ["input", "c", "i"]
    assert [list(blob.data) for blob in net.layer[1].blobs] == [[1, 2], [3]]
    assert list(net.layer[1].convolution_param.pad) == [1]
    assert list(net.layer[1].bottom) == ["x"]
    assert list(net.layer[2].blobs[0].double_data) == [4]
    assert list(net.layer[2].blobs[0].diff) == [5]


def test_inputs_of_old_model_files_are_dropped():
    net = parse_net('input: "x" layer { name: "a" type: "ReLU" }')
    assert [layer.name for layer in net.layer] == ["a"]
    assert not net.input


@pytest.mark.parametrize(
    ("text", "dropped"),
    [
        ('layers { layer { name: "r" type: "relu" num_output: 3 } }', "'num_output'"),
        ('layers { layer { name: "r" type: "lrn" pad: 3 } }', "'pad'"),
        ('layers { layer { type: "relu" } } layers { name: "v1" type: RELU }', "'v1'"),
        ('layers { layer { type: "relu" } } debug_info: true', "'debug_info'"),
    ],
)
def test_what_cannot_be_translated_is_reported(text, dropped):
    with pytest.warns(UpgradeWarning, match=dropped):
        net = parse_net(text)
    assert net.layer[0].type in ("ReLU", "LRN")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('layers { layer { name: "a" type: "con" } }', LayerError, "did you mean 'conv'"),
        ('layers { layer { name: "a" type: "conv" } bottom: "no" }', LayerError, "bottom 'no'"),
        (
            'input: "x" layers { layer { name: "p" type: "padding" } bottom: "x" top: "y" }'
            ' layers { layer { name: "a" type: "relu" } bottom: "y" }',
            LayerError,
            "layer 'a': type 'relu' cannot read a padding layer",
        ),
        ('input: "x" input_dim: 1', SpecError, "4 input_dim fields, found 1"),
        ('input: "x" input: "y" input_shape { }', SpecError, "2 input_shape fields, found 1"),
    ],
)
def test_what_cannot_be_upgraded_is_refused(text, error, message):
    with pytest.raises(error, match=message):
        parse_net(text, "old.prototxt")
