"""`sparknet show` and `sparknet draw`."""

from pathlib import Path

import pytest

from sparknet.cli import command, main, net_file
from sparknet.cli.completion import subcommands

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 4 } }
layer { name: "train" type: "ReLU" bottom: "ip" top: "ip" include { phase: TRAIN } }
layer { name: "test" type: "Softmax" bottom: "ip" top: "prob" include { phase: TEST } }
layer { name: "odd" type: "TanH" bottom: "ip" top: "odd" include { min_level: 3 stage: "s" } }
"""


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    return str(tmp_path / "net.prototxt")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_show(net, capsys):
    lines = printed(capsys, "show", net).splitlines()
    assert lines[3].split() == ["ip", "InnerProduct", "2", "x", "4", "16"]
    assert [line.split()[0] for line in lines[2:5]] == ["data", "ip", "train"]
    assert lines[-1].startswith("16 parameters")


def test_the_state(net, capsys):
    text = printed(capsys, "show", net, "--phase", "test", "--level", "3", "--stage", "s")
    names = [line.split()[0] for line in text.splitlines()[2:-2]]
    assert names == ["data", "ip", "test", "odd"]
    assert "Split" in printed(
        capsys, "show", net, "--phase=test", "--level=3", "--stage=s", "--splits"
    )


def test_a_model_with_weights(net, capsys, tmp_path):
    from sparknet.proto import read_net

    model = tmp_path / "net.caffemodel"
    model.write_bytes(read_net(net).SerializeToString())
    assert printed(capsys, "show", str(model)) == printed(capsys, "show", net)


def test_draw_to_stdout(net, capsys):
    text = printed(capsys, "draw", net, "--rankdir", "LR")
    assert text.startswith('digraph "small" {')
    assert "rankdir=LR" in text
    assert "2 x 4" in text


def test_draw_plain(capsys, tmp_path):
    file = tmp_path / "part.prototxt"
    file.write_text('layer { name: "x" type: "Unheard" bottom: "a" top: "b" }')
    assert '"x_Unheard" -> "b_blob"' in printed(capsys, "draw", "--plain", str(file))
    assert main(["draw", str(file)]) == 1
    assert "x" in capsys.readouterr().err


@pytest.mark.parametrize(("phase", "there"), [("train", False), ("test", True)])
def test_draw_plain_of_one_phase(phase, there, capsys, tmp_path):
    file = tmp_path / "part.prototxt"
    file.write_text(
        'layer { name: "x" type: "Unheard" bottom: "a" top: "b" }'
        'layer { name: "y" type: "Unheard" bottom: "b" top: "c" include { phase: TEST } }'
    )
    dot = printed(capsys, "draw", "--plain", "-phase", phase, str(file))
    assert '"x_Unheard" -> "b_blob"' in dot
    assert ('"y_Unheard" -> "c_blob"' in dot) == there


def test_draw_to_a_file(net, capsys, tmp_path):
    out = tmp_path / "net.dot"
    assert printed(capsys, "draw", net, str(out)) == ""
    assert out.read_text() == printed(capsys, "draw", net)
    assert main(["draw", net, str(tmp_path / "net.bmp")]) == 1
    assert ".svg" in capsys.readouterr().err


def test_the_net_is_given_by_position_or_as_a_flag(net, tmp_path, capsys):
    assert printed(capsys, "show", "-model", net) == printed(capsys, "show", net)
    assert printed(capsys, "draw", "-model", net) == printed(capsys, "draw", net)
    for words in ([net, "one.dot"], ["-model", net, "two.dot"]):
        printed(capsys, "draw", *words[:-1], str(tmp_path / words[-1]))
    assert (tmp_path / "one.dot").read_text() == (tmp_path / "two.dot").read_text()
    assert main(["time", net, "-iterations", "1", "-phase", "test"]) == 0
    assert "InnerProduct" in capsys.readouterr().out


NET_VERBS = ("show", "draw", "test", "time", "predict", "features", "quantize", "export")


@pytest.mark.parametrize("verb", NET_VERBS)
def test_each_verb_of_a_net_takes_it_in_both_ways(verb, net, tmp_path, capsys):
    more = {
        "predict": ["x.png"],
        "features": ["--outputs", "ip", "--out", "f.npz", "x.png"],
        "draw": ["out.svg"],
        "quantize": ["out.caffemodel"],
        "export": ["out.onnx"],
    }.get(verb, [])
    named = command().parse_args([verb, "-model", net, *more])
    placed = command().parse_args([verb, net, *more])
    between = command().parse_args([verb, net, "-level", "0", *more])
    for chosen in (named, placed, between):
        net_file.take_words(chosen)
        assert chosen.model == net
        assert getattr(chosen, "out", None) in {None, "f.npz", *more[-1:]}
        assert getattr(chosen, "inputs", ["x.png"]) == ["x.png"]
    assert main([verb, net, "-model", net, *more]) == 2
    assert f"the net is {net} and {net}: give NET or -model" in capsys.readouterr().err
    assert main([verb, *more[:-1]]) == 2
    assert "give NET or -model" in capsys.readouterr().err


def test_every_verb_with_a_flag_for_the_net_is_among_them():
    verbs = subcommands(command())
    with_model = {name for name in verbs if "-model" in verbs[name]._option_string_actions}
    assert with_model - {"device_query"} == {*NET_VERBS, "train", "plan"}


@pytest.mark.parametrize("verb", ["train", "plan"])
def test_the_solver_is_given_by_position_or_as_a_flag(verb, capsys):
    for words in (["s.prototxt"], ["-solver", "s.prototxt"]):
        assert main([verb, *words]) == 1
        assert "s.prototxt: no such file" in capsys.readouterr().err
    assert main([verb, "a", "-solver", "b"]) == 2
    assert "the solver is a and b: give SOLVER or -solver" in capsys.readouterr().err
    assert main([verb]) == 2
    assert "give SOLVER or -solver" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["draw", "quantize", "export"])
def test_what_is_written_is_given_by_position_or_as_a_flag(verb, net, capsys):
    for words in ([net, "--out", "x"], [net, "x"], ["-model", net, "x"]):
        chosen = command().parse_args([verb, *words])
        net_file.take_words(chosen)
        assert (chosen.model, chosen.out) == (net, "x")
    assert main([verb, net, "y", "--out", "x"]) == 2
    assert "the output is y and x: give one" in capsys.readouterr().err


def test_a_net_whose_data_is_not_there(tmp_path, capsys, monkeypatch):
    """Caffe's own nets name databases and means: a crop or --shape says how large records are."""
    monkeypatch.chdir(tmp_path)
    data = """layer { name: "db" type: "Data" top: "data" top: "label" %s
      data_param { source: "no_lmdb" batch_size: 5 backend: LMDB } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
      inner_product_param { num_output: 4 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" }"""
    Path("a.prototxt").write_text(data % 'transform_param { crop_size: 6 mean_file: "no" }')
    Path("b.prototxt").write_text(data % "")
    assert main(["show", "a.prototxt"]) == 0
    told = capsys.readouterr()
    assert "'data' is taken for 5 x 3 x 6 x 6: layer 'db': Data: the mean file cannot" in told.err
    assert "436 parameters" in told.out
    assert main(["draw", "a.prototxt"]) == 0
    assert main(["show", "b.prototxt"]) == 2
    assert "hint: say what it holds: --shape data=NxCxHxW" in capsys.readouterr().err
    assert main(["show", "b.prototxt", "--shape", "data=5x1x6x6"]) == 0
    assert "148 parameters" in capsys.readouterr().out
