"""Layers of packages from outside, which the entry point group ``sparknet.layers`` names."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.goldens import ROOT

SOFTSIGN = """
import numpy as np
from sparknet.layers import Host, layer
from sparknet.layers.activations import Neuron


class SoftsignHost(Host):
    def forward(self, bottoms, tops):
        x = bottoms[0].data
        tops[0].data[...] = x / (1 + np.abs(x))

    def backward(self, tops, propagate_down, bottoms):
        if propagate_down[0]:
            bottoms[0].diff[...] = tops[0].diff / (1 + np.abs(bottoms[0].data)) ** 2


@layer("Softsign")
class Softsign(Neuron):
    '''y = x / (1 + |x|).'''

    works_in_place = False
    host = SoftsignHost
"""

TRAINING = """
import numpy as np
import sparknet
from sparknet import caffe

net = caffe.Net("net.prototxt", caffe.TRAIN)
net.params["ip"][0].data[...] = [[1, -2]]
net.blobs["x"].data[...] = [[1, 0], [0, 1], [1, 1]]
net.forward()
print(*net.blobs["y"].data.ravel().round(4))
net.backward()
print(*net.params["ip"][0].diff.ravel().round(4))
with open("solver.prototxt", "w") as file:
    file.write('net: "net.prototxt" base_lr: 2 lr_policy: "fixed" random_seed: 1 '
               'display: 0 max_iter: 400')
solver = caffe.SGDSolver("solver.prototxt")
for _ in range(400):
    solver.net.blobs["x"].data[...] = [[1, 0], [0, 1], [1, 1]]
    solver.net.blobs["label"].data[...] = [[0.5], [-0.5], [0]]
    solver.step(1)
print(*solver.net.params["ip"][0].data.ravel().round(3))
print(hasattr(sparknet.dsl, "Softsign"))
"""

NET = """
layer { name: "x" type: "Input" top: "x" top: "label"
  input_param { shape { dim: 3 dim: 2 } shape { dim: 3 dim: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 1 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "y" type: "Softsign" bottom: "ip" top: "y" }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "label" top: "loss" }
"""


def wheel(folder: Path, name: str, code: str) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[sparknet.layers]\n{name} = {name}\n",
    }
    record = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)
    return path


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'site'}:{ROOT}"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": path, "PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
    )


def install(folder: Path, code: str) -> None:
    words = ["-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target"]
    words += [str(folder / "site"), str(wheel(folder, "softsign", code))]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)


def test_an_installed_package_adds_a_layer(tmp_path):
    install(tmp_path, SOFTSIGN)
    (tmp_path / "net.prototxt").write_text(NET)
    done = run(tmp_path, TRAINING)
    assert done.returncode == 0, done.stderr
    values, slopes, learned, has_builder = done.stdout.splitlines()
    assert values == "0.5 -0.6667 -0.5"
    # Of the loss sum(y^2) / 6: y / 3 times 1 / (1 + |x|)^2, times the inputs.
    assert slopes == "0.0 -0.0664"
    assert (learned, has_builder) == ("1.0 -1.0", "True")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
        (SOFTSIGN.replace('@layer("Softsign")', '@layer("ReLU")'), "two classes for layer type"),
    ],
)
def test_a_package_that_fails_is_named_once(tmp_path, code, problem):
    install(tmp_path, code)
    code = (
        "from sparknet.layers import LAYERS\n"
        "assert LAYERS['ReLU'].__module__ == 'sparknet.layers.activations'\n"
        "print('Softsign' in LAYERS, 'Softsign' in LAYERS)"
    )
    done = run(tmp_path, code)
    assert done.stdout == "False False\n", done.stderr
    assert done.stderr.count("the layers of 'softsign' cannot be loaded: ") == 1
    assert problem in done.stderr
