"""What a conversion takes of memory, and files larger than a message of protobuf may be."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

from sparknet import Net
from sparknet.errors import FileError
from sparknet.onnx import OnnxWarning, read_model, source
from tests.onnx.graphs import draw, graph, helper, node, onnx, run, save

ROWS, COUNT = 1024, 40
BYTES = COUNT * ROWS * ROWS * 4

CHILD = """
import json, sys, warnings
import numpy as np
from sparknet import Net

def kilobytes(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))

warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    net = Net(path)
    if path == sys.argv[1]:
        with open("/proc/self/clear_refs", "w") as resets:
            resets.write("5")
        before = kilobytes("VmRSS")
peak = kilobytes("VmHWM") - before
first = net.net.params[next(iter(net.net.params))][0].data[0, :4]
print(json.dumps([peak * 1024, [float(one) for one in first]]))
"""


def chain(op, count, rows, folder):
    """Products of square matrices, whose numbers stand in the model or in a file beside it."""
    nodes = []
    made = graph([node("Relu", "x")], {"x": ["n", rows]}, [f"y{count - 1}"])
    data = None if folder is None else (folder / "weights.bin").open("wb")
    base, last = draw(rows, rows), "x"
    for i in range(count):
        more = {"transB": 1} if op == "Gemm" else {}
        nodes.append(node(op, f"{last} w{i}", f"y{i}", **more))
        last = f"y{i}"
        tensor = made.graph.initializer.add(name=f"w{i}", data_type=1, dims=[rows, rows])
        raw = np.roll(base, i).tobytes()
        if data is None:
            tensor.raw_data = raw
            continue
        tensor.data_location = onnx.TensorProto.EXTERNAL
        place = {"location": "weights.bin", "offset": data.tell(), "length": len(raw)}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        data.write(raw)
    if data is not None:
        data.close()
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is Linux's VmHWM")
@pytest.mark.parametrize(("op", "outside"), [("Gemm", False), ("MatMul", True)])
def test_a_net_takes_little_more_memory_than_its_file(tmp_path, op, outside):
    small, path = tmp_path / "small.onnx", tmp_path / "model.onnx"
    onnx.save(chain(op, 2, 8, None), str(small))
    onnx.save(chain(op, COUNT, ROWS, tmp_path if outside else None), str(path))
    words = [sys.executable, "-c", CHILD, str(small), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    peak, first = json.loads(done.stdout)
    weights = draw(ROWS, ROWS)
    np.testing.assert_array_equal(
        np.float32(first), weights[0, :4] if op == "Gemm" else weights[:4, 0]
    )
    assert 0.9 * BYTES < peak < 1.2 * BYTES


def test_values_of_constants_beside_the_message(tmp_path):
    """Large ones of each type, whose bytes protobuf does not see, and small ones, which it does."""
    constants = {
        "half": draw(40, 60).astype(np.float16),
        "single": draw(60, 50, seed=1),
        "double": draw(50, 20, seed=2).astype(np.float64),
        "small": draw(20, 3, seed=3),
    }
    nodes = [
        node("Cast", "half", "h", to=1),
        node("Cast", "double", "d", to=1),
        node("MatMul", "x h", "p"),
        node("MatMul", "p single", "q"),
        node("MatMul", "q d", "r"),
        node("MatMul", "r small", "y"),
    ]
    path = save(graph(nodes, {"x": [7, 40]}, constants=constants), tmp_path)
    x = draw(7, 40, seed=4)
    found = Net(path).net.forward(x=x)["y"]
    np.testing.assert_allclose(found, run(path, {"x": x})["y"], rtol=1e-4, atol=1e-3)


def test_a_matrix_that_two_products_read_both_ways(tmp_path):
    """It is turned for the first, and the file's for the second all the same."""
    constants = {"w": draw(64, 64)}
    nodes = [
        node("MatMul", "x w", "a"),
        node("Gemm", "a w", "b", transB=1),
        node("MatMul", "b w", "c"),
        node("Add", "c w", "y"),
    ]
    path = save(graph(nodes, {"x": [64, 64]}, constants=constants), tmp_path)
    x = draw(64, 64, seed=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnnxWarning)
        found = Net(path).net.forward(x=x)["y"]
    want = run(path, {"x": x})["y"]
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def test_a_copy_of_a_net_that_waits_for_its_data(tmp_path):
    """Neither takes the weights of the file from the other."""
    path = tmp_path / "model.onnx"
    weights = draw(5, 3)
    onnx.save(graph([node("MatMul", "x w")], {"x": ["n", 5]}, constants={"w": weights}), str(path))
    net = tmp_path / "net.prototxt"
    net.write_text(
        "layer { name: 'x' type: 'HDF5Data' top: 'x'\n"
        "  hdf5_data_param { source: 'none.txt' batch_size: 5 } }\n"
        "layer { name: 'MatMul_y' type: 'InnerProduct' bottom: 'x' top: 'y'\n"
        "  inner_product_param { num_output: 3 bias_term: false } }"
    )
    first = Net(net, path)
    second = first.copy()
    for one in (first, second):
        one.set_validation_data({"x": np.eye(5, dtype=np.float32)})
        np.testing.assert_array_equal(one.net.params["MatMul_y"][0].data, weights.T)


def test_more_than_protobuf_reads(tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    floats = helper.make_tensor("w", 1, [40, 40], draw(40, 40).ravel().tolist())
    model = graph([node("MatMul", "x w")], {"x": ["n", 40]})
    model.graph.initializer.append(floats)
    onnx.save(model, str(path))
    monkeypatch.setattr(source, "MOST_MESSAGE", 4096)
    with pytest.raises(FileError, match=r"has \d+ bytes beside .* a file of their own"):
        read_model(path)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(draw(40, 40), "w"))
    onnx.save(model, str(path))
    assert read_model(path).arrays[1][0] is not None


def test_a_file_cut_short_in_a_constant(tmp_path):
    path = tmp_path / "model.onnx"
    constants = {"w": draw(64, 64)}
    onnx.save(graph([node("MatMul", "x w")], {"x": ["n", 64]}, constants=constants), str(path))
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(FileError, match="is no ONNX model, or damaged or cut short at byte"):
        read_model(path)


def test_a_constant_with_too_few_bytes(tmp_path):
    path = tmp_path / "model.onnx"
    model = graph([node("MatMul", "x w")], {"x": ["n", 64]}, constants={"w": draw(64, 64)})
    model.graph.initializer[0].dims[0] = 65
    onnx.save(model, str(path))
    with pytest.raises(FileError, match=r"constant 'w' has 16384 bytes; its shape asks for 16640"):
        read_model(path)
