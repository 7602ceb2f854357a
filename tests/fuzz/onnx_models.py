"""Small sound ONNX models: layers of many kinds, constants that the model computes, a GRU."""

from __future__ import annotations

from typing import Any

import numpy as np


def onnx_models() -> list[bytes]:
    from onnx import TensorProto, helper, numpy_helper

    def model(nodes: list[Any], shape: list[Any], constants: dict[str, Any]) -> bytes:
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
        )
        opset = helper.make_opsetid("", 17)
        made = helper.make_model(graph, opset_imports=[opset], ir_version=8)
        data: bytes = made.SerializeToString()
        return data

    node, ones = helper.make_node, np.ones
    image = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1, 0, 1], strides=[2, 1]),
        node("BatchNormalization", ["a", "s", "s", "s", "s"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], ceil_mode=1),
        node("Resize", ["c", "", "r"], ["d"], mode="linear"),
        node("Pad", ["d", "p"], ["e"], mode="reflect"),
        node("AveragePool", ["e"], ["f"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Flatten", ["f"], ["y"]),
    ]
    sizes = {
        "w": ones((2, 3, 3, 3), np.float32),
        "s": ones(2, np.float32),
        "r": np.array([1, 1, 2, 1.5], np.float32),
        "p": np.array([0, 0, 1, 1, 0, 0, 0, 1]),
    }
    words = [
        node("Shape", ["x"], ["a"]),
        node("Gather", ["a", "zero"], ["n"]),
        node("Concat", ["n", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["b"]),
        node("Transpose", ["b"], ["c"], perm=[0, 2, 1]),
        node("MatMul", ["b", "c"], ["d"]),
        node("Softmax", ["d"], ["e"], axis=-1),
        node("Slice", ["e", "zero", "two", "two"], ["f"]),
        node("ReduceMean", ["f"], ["g"], axes=[1]),
        node("ConstantOfShape", ["rest"], ["k"]),
        node("Tile", ["k", "two2"], ["l"]),
        node("ReduceSum", ["l"], ["m"], keepdims=0),
        node("Mul", ["g", "m"], ["h"]),
        node("Split", ["h"], ["y", "z"], axis=1),
    ]
    numbers = {"zero": np.array([0]), "rest": np.array([2, 6]), "two": np.array([2])}
    numbers["two2"] = np.array([2, 2])
    steps = [
        node("GRU", ["x", "w", "r", "b"], ["o", "p"], hidden_size=2, direction="bidirectional"),
        node("Squeeze", ["o", "k"], ["q"]),
        node("Expand", ["p", "e"], ["i"]),
        node("LSTM", ["x", "v", "u"], ["y"], hidden_size=2),
    ]
    weights = {
        "w": ones((2, 6, 3), np.float32),
        "r": ones((2, 6, 2), np.float32),
        "b": ones((2, 12), np.float32),
        "k": np.array([0]),
        "e": np.array([2, 1, 2]),
        "v": ones((1, 8, 3), np.float32),
        "u": ones((1, 8, 2), np.float32),
    }
    return [
        model(image, ["n", 3, 6, 6], sizes),
        model(words, ["n", 3, 4], numbers),
        model(steps, [4, "n", 3], weights),
    ]
