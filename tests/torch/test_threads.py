"""The threads of a verb are those that PyTorch computes with, where it is the engine."""

import json

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch

from sparknet import native
from sparknet.cli import main
from sparknet.torch import layer_passes
from tests.cli.test_time import NET


@pytest.fixture
def threads():
    before = native.threads(), torch.get_num_threads()
    yield
    native.set_threads(before[0])
    torch.set_num_threads(before[1])


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_time_with_threads(engine, threads, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SPARKNET_ENGINE", engine)
    path = tmp_path / "net.prototxt"
    path.write_text(NET)
    torch.set_num_threads(3)
    used = set[int]()
    computed = layer_passes.forward

    def watched(*given):
        used.add(torch.get_num_threads())
        computed(*given)

    monkeypatch.setattr(layer_passes, "forward", watched)
    words = ["time", str(path), "-iterations", "1", "--json", "--threads"]
    for count in (1, 2):
        assert main([*words, str(count)]) == 0
        assert json.loads(capsys.readouterr().out)["threads"] == count
        assert used == ({count} if engine == "torch" else set())
        assert torch.get_num_threads() == (count if engine == "torch" else 3)
        used.clear()
