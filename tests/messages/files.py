"""Files that somebody might have: a small task, and what is wrong with each of the others."""

from pathlib import Path

import numpy as np

from sparknet import Net
from sparknet.cli import main

NET = """name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [5, 3] } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: [5] } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
DEPLOY = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [2, 3, 8, 8] } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""
DATA = """
layer { name: "data" type: "Data" top: "data" top: "label"
  data_param { source: "%s" backend: LMDB batch_size: 5 } }
"""
SOLVER = """net: "net.prototxt"
base_lr: 0.1
lr_policy: "fixed"
max_iter: 3
snapshot_prefix: "small"
"""
X = np.random.default_rng(0).random((20, 3), np.float32)
Y = np.arange(20) % 2


def write_files():
    """All of them, in the working folder."""
    prototxts()
    weights()
    pictures()
    arrays()


def prototxts():
    texts = {
        "net": NET,
        "deploy": DEPLOY,
        "solver": SOLVER,
        "other": NET.replace("num_output: 2", "num_output: 7"),
        "typo": NET.replace("num_output", "num_outputs"),
        "brace": NET.rstrip().rstrip("}"),
        "unknown": NET.replace('"InnerProduct"', '"InerProduct"'),
        "bottom": NET.replace('bottom: "data" top: "ip"', 'bottom: "dta" top: "ip"'),
        "enum": NET.replace("phase: TEST", "phase: TESTING"),
        "lossless": NET.replace("SoftmaxWithLoss", "Softmax").replace(
            'bottom: "label" top: "loss"', 'top: "loss"'
        ),
        "lossless_solver": SOLVER.replace("net.prototxt", "lossless.prototxt"),
        "misspelt": SOLVER.replace("lr_policy", "lr_polcy"),
        "policy": SOLVER.replace('"fixed"', '"fixd"'),
        "nowhere": SOLVER.replace("net.prototxt", "nirgends.prototxt"),
        "nonet": SOLVER.replace('net: "net.prototxt"\n', ""),
    }
    for name in ("pictures", "nodb", "cut_lmdb"):
        texts[f"{name}_net"] = DATA % name + NET.split("\n", 3)[3]
        texts[f"{name}_solver"] = SOLVER.replace("net.prototxt", f"{name}_net.prototxt")
    for name, text in texts.items():
        Path(f"{name}.prototxt").write_text(text)


def weights():
    for name in ("net", "deploy", "other"):
        Net(f"{name}.prototxt", seed=1).save(f"{name}.caffemodel")
    Path("cut.caffemodel").write_bytes(Path("net.caffemodel").read_bytes()[:-9])
    Path("empty.caffemodel").touch()
    Path("text.txt").write_text("hello\n")
    Path("bad.onnx").write_bytes(b"\x08\x01hello world")


def pictures():
    from PIL import Image

    Path("pictures").mkdir()
    Path("nothing").mkdir()
    for path in ("a.jpg", "pictures/a.jpg"):
        Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(path)
    Path("cut.jpg").write_bytes(Path("a.jpg").read_bytes()[:200])
    Path("text.jpg").write_text("hello")
    Path("list.txt").write_text("pictures/a.jpg 0\npictures/zz.jpg 1\n")
    Path("badlist.txt").write_text("pictures/a.jpg\n")
    Path("table.csv").write_text("a,b\n1,2\n")


def arrays():
    import h5py
    import pandas as pd

    wide = np.zeros((20, 4), np.float32)
    sets = {
        "train": {"data": X, "label": Y},
        "labels": {"data": X, "label": Y + 5},
        "wide": {"data": wide, "label": Y},
        "nan": {"data": X * np.float32(np.nan), "label": Y},
        "images": {"images": X, "label": Y},
        "none": {"data": X[:0], "label": Y[:0]},
        "pixels": {"data": np.zeros((20, 3, 1, 1), np.uint8), "label": Y},
    }
    for name, columns in sets.items():
        np.savez(f"{name}.npz", **columns)
    np.save("data.npy", X)
    with h5py.File("wrong.h5", "w") as file:
        file["images"], file["label"] = X, Y
    with h5py.File("short.h5", "w") as file:
        file["data"], file["label"] = X, Y[:7]
    pd.DataFrame({"data": list(X), "label": Y}).to_parquet("train.parquet")
    for name, size in {"train.npz": 40, "train.parquet": 20}.items():
        cut = Path(name).read_bytes()[:-size]
        Path(name.replace("train", "cut")).write_bytes(cut)
    for name in ("train_lmdb", "cut_lmdb"):
        assert main(["convert", "records", "pixels.npz", name]) == 0
    Path("cut_lmdb/data.mdb").write_bytes(Path("train_lmdb/data.mdb").read_bytes()[:5000])
