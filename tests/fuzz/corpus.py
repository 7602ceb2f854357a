"""Sound files to begin with: some made here, and those of the recorded cases."""

import random
import tempfile
from pathlib import Path

import numpy as np

from sparknet.errors import SparkNetError
from sparknet.proto import caffe_pb2
from sparknet.proto.blob_file import write_blob
from sparknet.proto.model import Model
from sparknet.proto.model_file import write_model
from sparknet.proto.state_file import SolverState, write_state
from sparknet.proto.text import parse_text
from sparknet.weights import write_tensors
from tests.fuzz.data_sets import data_sets
from tests.fuzz.layers import TYPES, draw_net
from tests.fuzz.mutate import mutated
from tests.fuzz.onnx_models import onnx_models
from tests.fuzz.readers import LEVELDB, TEXTS
from tests.goldens import GOLDENS

NET = b"""name: "net"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  param { lr_mult: 1 } include { phase: TRAIN stage: 'a' }
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
"""
OLD_NET = b"""input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layers { layer { name: "pad" type: "padding" pad: 2 } bottom: "data" top: "pad" }
layers { layer { name: "c" type: "conv" num_output: 2 kernelsize: 3 } bottom: "pad" top: "c" }
"""
SOLVER = b"""net: "net.prototxt" base_lr: 1e-2 lr_policy: "step" stepsize: 10 gamma: .5
momentum: 0.9 weight_decay: 0.0005 snapshot_format: HDF5 solver_type: NESTEROV
"""
PATTERNS = {
    "net": (
        "layers/conv*.prototxt",
        "formats/*/*.prototxt",
        "nets/*.prototxt",
        "errors/*.prototxt",
    ),
    "solver": ("solvers/*.solver.prototxt", "nets/*.solver.prototxt"),
    "net_built": ("layers/*.prototxt",),
    "caffemodel": ("formats/binary/*.caffemodel", "solvers/snapshots/*/*.caffemodel"),
    "solverstate": ("solvers/snapshots/*/*.solverstate", "errors/*.solverstate"),
    "binaryproto": ("data/*.binaryproto", "formats/arrays/*.binaryproto"),
    "model_h5": ("formats/binary/*.h5", "solvers/snapshots/*/*.caffemodel.h5", "errors/*.h5"),
    "state_h5": ("solvers/snapshots/*/*.solverstate.h5",),
    "data_h5": ("data/h5/*.h5",),
    "lmdb": ("data/*_lmdb/data.mdb",),
}


def corpus() -> dict[str, list[bytes]]:
    """Files by kind."""
    out = _messages() | data_sets() | {"onnx": onnx_models(), "safetensors": _tensors()}
    for kind, patterns in PATTERNS.items():
        for pattern in patterns:
            out[kind] += [path.read_bytes() for path in sorted(GOLDENS.glob(pattern))]
    out["caffemodel"] += _binary(out["net"])
    out["layer"] = [draw_net(random.Random(type_name), type_name) for type_name in TYPES]
    for kind, place in LEVELDB.items():
        out[kind] = [GOLDENS.joinpath("data", *place).read_bytes()]
    return out


def another(kind: str, files: list[bytes], rng: random.Random) -> bytes:
    """The next input: a file with damage, or a net that is drawn."""
    if kind == "layer":
        return draw_net(rng)
    return mutated(rng, rng.choice(files), rng.choice(files), kind in TEXTS)


def _binary(texts: list[bytes]) -> list[bytes]:
    """Nets in binary, old generations among them, that have no weights yet."""
    out = []
    for text in texts:
        try:
            out.append(parse_text(text, caffe_pb2.NetParameter).SerializeToString())
        except SparkNetError:
            continue
    return out


def _tensors() -> list[bytes]:
    arrays = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "a.bias": np.zeros(2)}
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("float32", "float16", "bf16"):
            write_tensors(Path(folder, kind), arrays, kind)
            made.append(Path(folder, kind).read_bytes())
    return made


def _messages() -> dict[str, list[bytes]]:
    net = caffe_pb2.NetParameter(name="net")
    net.layer.add(name="a", type="InnerProduct", bottom=["x"], top=["a"])
    net.layer.add(name="b", type="BatchNorm")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    model = Model(net, [[array, array[0]], [array]], [[array, array[0]], [array]])
    state = SolverState(3, "x.caffemodel", 1, [array, array])
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            kind: Path(folder, f"x{'.h5' if kind.endswith('h5') else ''}")
            for kind in ("caffemodel", "solverstate", "binaryproto", "model_h5", "state_h5")
        }
        out: dict[str, list[bytes]] = {
            "net": [NET, OLD_NET],
            "solver": [SOLVER],
            "net_built": [NET],
        }
        for kind, path in paths.items():
            if kind in ("caffemodel", "model_h5"):
                write_model(path, model, write_diff=True)
            elif kind in ("solverstate", "state_h5"):
                write_state(path, state)
            else:
                write_blob(path, array, array, legacy=True)
            out[kind] = [path.read_bytes()]
        return out
