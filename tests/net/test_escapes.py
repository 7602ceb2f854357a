"""What names of a net show on a terminal is text alone."""

import logging

import numpy as np

import sparknet
from sparknet import caffe
from sparknet.caffe.solvers.report import say_outputs
from sparknet.cli import main
from sparknet.errors import clean, printable
from sparknet.graph import build, summary
from sparknet.proto import caffe_pb2, write_text

EVIL = "a\x1b]0;owned\x07\r\x9b2J\nb"


def net(**more):
    """Every name, of the net, its layers and blobs, moves the cursor."""
    made = caffe_pb2.NetParameter(name=EVIL)
    source = made.layer.add(name=EVIL + "1", type="Input", top=[EVIL])
    source.input_param.shape.add(dim=[1, 2])
    made.layer.add(name=EVIL + "2", type="Power", bottom=[EVIL], top=["y" + EVIL])
    if more:
        made.layer.add(name="l", type=EVIL, bottom=[EVIL], top=["z" + EVIL])
        made.layer.add(name=EVIL + "3", type="Power", bottom=["z" + EVIL], top=["w"])
    return made


def is_harmless(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text) and "owned" in text


def test_repr_and_tables():
    assert is_harmless(repr(sparknet.Net(net())))
    assert "\n" not in repr(sparknet.Net(net()))
    assert is_harmless(summary(build(net(unknown=True), caffe.TEST, unknown="skip")))
    assert is_harmless(sparknet.NetParams.from_proto(net()).summary(phase=caffe.TEST))


def test_logs(caplog):
    with caplog.at_level(logging.INFO, "sparknet.caffe"):
        say_outputs("Test", {EVIL: np.ones(1)}, {EVIL: 1.0})
    assert is_harmless(caplog.messages[0])
    assert "\n" not in caplog.messages[0]


def test_the_command(tmp_path, capsys):
    path = tmp_path / "net.prototxt"
    write_text(path, net(unknown=True))
    assert main(["show", str(path)]) == 0
    assert is_harmless(capsys.readouterr().out)
    path.write_text(f"name: 'owned' nosuch{EVIL!r}: 1".replace("'", '"'), encoding="utf-8")
    missing = tmp_path / f"owned{EVIL[:-2]}"
    assert main(["show", str(missing)]) == 1
    assert is_harmless(capsys.readouterr().err)


def test_printable_text_stays():
    assert printable("größe\n  x") == "größe\n  x"
    assert printable("a\tb\x1b") == "a\\tb\\x1b"
    assert clean("a\nb") == "a\\nb"
