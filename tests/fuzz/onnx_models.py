"""Small sound ONNX models: layers of many kinds, computed constants, a GRU, choices, eight bits."""

import numpy as np


def onnx_models() -> list[bytes]:
    from onnx import TensorProto, helper, numpy_helper

    def model(nodes, shape, constants, outputs="y"):
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
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
        node("Split", ["h"], ["y", "z"], axis=2),
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
    chosen = [
        node("Shape", ["x"], ["a"], end=1),
        node("Squeeze", ["a"], ["n"]),
        node("Range", ["none", "n", "one"], ["b"]),
        node("Mul", ["b", "size"], ["c"]),
        node("Unsqueeze", ["c", "last"], ["d"]),
        node("Add", ["d", "own"], ["e"]),
        node("Reshape", ["x", "flat"], ["f"]),
        node("Gather", ["f", "e"], ["g"]),
        node("TopK", ["g", "most"], ["h", "i"], axis=1),
        node("ArgMin", ["x"], ["k"], axis=1, keepdims=0),
        node("Greater", ["x", "half"], ["l"]),
        node("ScatterND", ["table", "at", "two"], ["m"]),
        node("Trilu", ["m"], ["o"]),
        node("Where", ["l", "o", "x"], ["p"]),
        node("Einsum", ["p", "w"], ["q"], equation="ncd,de->nec"),
        node("QuantizeLinear", ["q", "half", "zero"], ["r"]),
        node("DequantizeLinear", ["r", "half", "zero"], ["s"]),
        node("Transpose", ["s"], ["t"], perm=[1, 2, 0]),
        node("GatherND", ["t", "at"], ["u"]),
        node("Reshape", ["x", "volume"], ["v"]),
        node("MaxPool", ["v"], ["y"], kernel_shape=[2, 1, 2], strides=[1, 1, 1]),
        node("Concat", ["i", "k"], ["unread"], axis=1),
        node("Equal", ["h", "h"], ["z"]),
    ]
    narrow = [
        node("QuantizeLinear", ["x", "s", "z"], ["a"]),
        node("DequantizeLinear", ["a", "s", "z"], ["b"]),
        node("DequantizeLinear", ["v", "t", "u"], ["w"], axis=0),
        node("Conv", ["b", "w"], ["c"]),
        node("PRelu", ["c", "p"], ["d"]),
        node("Trilu", ["d", "one"], ["e"], upper=0),
        node("LpNormalization", ["e"], ["f"], axis=1),
        node("ConvTranspose", ["f", "r"], ["y"], strides=[2, 2], output_shape=[6, 6]),
    ]
    whole = {
        "s": np.array(0.02, np.float32),
        "z": np.array(0, np.uint8),
        "v": ones((2, 3, 2, 2), np.int8),
        "t": np.array([0.5, 0.25], np.float32),
        "u": np.array([0, 3], np.int8),
        "p": ones((2, 3, 3), np.float32),
        "one": np.array(1),
        "r": ones((2, 1, 3, 3), np.float32),
    }
    places = {
        "none": np.array(0),
        "one": np.array(1),
        "size": np.array(12),
        "last": np.array([1]),
        "own": np.array([11, 0, 3]),
        "flat": np.array([-1]),
        "most": np.array([2]),
        "half": np.array(0.5, np.float32),
        "zero": np.array(3, np.int8),
        "table": ones((3, 4), np.float32),
        "at": np.array([[0, 1], [2, 2]]),
        "two": ones(2, np.float32),
        "w": ones((4, 3), np.float32),
        "volume": np.array([0, 1, 3, 2, 2]),
    }
    return [
        model(chosen, ["n", 3, 4], places, ["y", "u", "z"]),
        model(image, ["n", 3, 6, 6], sizes),
        model(words, ["n", 3, 4], numbers),
        model(steps, [4, "n", 3], weights),
        model(narrow, ["n", 3, 4, 4], whole),
    ]
