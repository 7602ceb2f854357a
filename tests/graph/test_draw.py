import os
import shutil
import stat
from pathlib import Path

import pytest

from sparknet.errors import FileError, SpecError
from sparknet.graph import draw, render, to_dot
from tests.graph.nets import dense, graph, layer, source

NET = graph(
    source("x", 2, 3),
    dense("f", "x", "y", 4),
    layer("ReLU", "r", "y", "y"),
    dense("a", "y", "p"),
    dense("b", "y", "q"),
    net='name: "tiny"',
)


def test_layers_are_boxes_and_blobs_are_edges():
    lines = [line.strip() for line in to_dot(NET).splitlines()]
    assert lines[:2] == ['digraph "tiny" {', "rankdir=TB;"]
    assert 'n0 [label="in_x\\nInput", fillcolor="#dcebdc"];' in lines
    assert 'n1 [label="f\\nInnerProduct\\n16 parameters", fillcolor="#d9e4f4"];' in lines
    assert 'n0 -> n1 [label="x\\n2 x 3"];' in lines
    assert 'n1 -> n2 [label="y\\n2 x 4"];' in lines


def test_splits_are_drawn_as_their_source():
    dot = to_dot(NET)
    assert "split" not in dot
    assert 'n2 -> n4 [label="y\\n2 x 4"];' in dot
    assert 'n2 -> n5 [label="y\\n2 x 4"];' in dot


def test_outputs_are_ovals():
    dot = to_dot(NET)
    assert 'o0 [label="p\\n2 x 2", shape=ellipse, style=""];' in dot
    assert "n4 -> o0;" in dot


@pytest.mark.parametrize("rankdir", ["TB", "BT", "LR", "RL"])
def test_directions(rankdir):
    assert f"rankdir={rankdir};" in to_dot(NET, rankdir)


def test_an_unknown_direction_is_refused():
    with pytest.raises(SpecError, match="rankdir 'up; evil'"):
        to_dot(NET, "up; evil")


def test_names_cannot_leave_their_quotes():
    name = '\\"]; evil [label=\\"\\\\'
    net = graph(f'name: "{name}" type: "Input" top: "{name}"', net=f'name: "{name}"')
    dot = to_dot(net)
    assert dot.splitlines()[0] == r'digraph "\"]; evil [label=\"\\" {'
    assert r'n0 [label="\"]; evil [label=\"\\\nInput", fillcolor="#dcebdc"];' in dot


def test_dot_text_is_written_without_graphviz(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    render(to_dot(NET), tmp_path / "net.dot")
    assert (tmp_path / "net.dot").read_text() == to_dot(NET)


def test_missing_graphviz_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileError, match=r"SVG needs Graphviz.*'dot' is not on the PATH"):
        render(to_dot(NET), tmp_path / "net.svg")


def test_unwritable_paths_are_refused(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        render("", tmp_path / "nowhere" / "net.dot")


def program(folder: Path, script: str) -> None:
    """A stand-in for Graphviz."""
    path = folder / "dot"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_graphviz_gets_the_text_and_makes_the_file(tmp_path, monkeypatch):
    program(tmp_path, 'echo "$@"; cat')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    render("digraph {}", tmp_path / "-o net.PNG")
    assert (tmp_path / "-o net.PNG").read_text() == "-Tpng\ndigraph {}"


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_graphviz_failing_is_one_sentence(tmp_path, monkeypatch):
    program(tmp_path, "echo 'syntax error' >&2; echo more >&2; exit 3")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(FileError, match=r"Graphviz failed: syntax error$"):
        render("digraph {}", tmp_path / "net.svg")


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_graphviz_that_hangs_is_stopped(tmp_path, monkeypatch):
    program(tmp_path, "exec sleep 60")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(draw, "TIMEOUT_S", 0.1)
    with pytest.raises(FileError, match="took longer"):
        render("digraph {}", tmp_path / "net.svg")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws(tmp_path):
    render(to_dot(NET), tmp_path / "net.svg")
    assert "<svg" in (tmp_path / "net.svg").read_text()
