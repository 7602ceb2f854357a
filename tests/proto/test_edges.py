"""Where one more or one less is another answer, and what is rarely written."""

from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError, SolverError, SpecError
from sparknet.proto import (
    UnknownWarning,
    caffe_pb2,
    check_solver,
    parse_net,
    parse_solver,
    parse_text,
    read_blob,
    read_model,
    upgrade_net,
)


@pytest.mark.parametrize("mark", ["", ";", ","])
def test_an_unknown_field_is_passed_over_with_what_separates_it(mark):
    layer = f'layer {{ name: "a" novelty {{ x: 1 }}{mark} type: "T" }}'
    with pytest.warns(UnknownWarning):
        net = parse_net(f'name: "n" novelty: 3{mark} {layer}', unknown="skip")
    assert (net.name, net.layer[0].name, net.layer[0].type) == ("n", "a", "T")


def test_both_messages_of_a_data_layer_are_present_after_its_upgrade():
    """Where nothing of it moves, too, as Caffe has it."""
    text = """layers { name: "a" type: DATA top: "x" data_param { source: "s" scale: 0.5 } }
      layers { name: "b" type: DATA top: "y" data_param { source: "s" } }"""
    first, second = upgrade_net(parse_text(text, caffe_pb2.NetParameter)).layer
    assert first.transform_param.scale == 0.5
    assert second.HasField("transform_param")
    assert second.HasField("data_param")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_old_input_takes_four_sizes(count):
    names = "".join(f'input: "i{i}" ' for i in range(count))
    sizes = "".join(f"input_dim: {i + 1} " for i in range(4 * count))
    (layer,) = upgrade_net(parse_text(names + sizes, caffe_pb2.NetParameter)).layer
    shapes = [list(shape.dim) for shape in layer.input_param.shape]
    assert shapes == [[4 * i + 1, 4 * i + 2, 4 * i + 3, 4 * i + 4] for i in range(count)]
    fewer = sizes.rpartition("input_dim")[0]
    need = f"{count} input fields need {4 * count} input_dim fields, found {4 * count - 1}"
    with pytest.raises(SpecError, match=need):
        parse_net(names + fewer)


def test_a_rate_that_does_not_shrink_is_no_fault():
    def solver(gamma: str) -> caffe_pb2.SolverParameter:
        return parse_solver(f'net: "n" lr_policy: "exp" gamma: {gamma}')

    check_solver(solver("0"))
    for gamma in ("-0.1", "nan"):
        with pytest.raises(SolverError, match=f"gamma is {gamma}, but"):
            check_solver(solver(gamma))


def int8_model(path: Path, steps: list[float], numbers: bytes = b"\x01\xff\x7f\x80") -> Path:
    blob = caffe_pb2.BlobProto(int8_data=numbers, int8_step=steps)
    blob.shape.dim.extend([2, 2])
    layer = caffe_pb2.LayerParameter(name="ip", type="InnerProduct", blobs=[blob])
    path.write_bytes(caffe_pb2.NetParameter(layer=[layer]).SerializeToString())
    return path


def test_numbers_of_eight_bits_are_multiplied_by_the_step_of_their_row(tmp_path):
    (array,) = read_model(int8_model(tmp_path / "m.caffemodel", [0.5, 2.0])).layer_arrays("ip")
    assert array is not None
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, [[0.5, -0.5], [254, -256]])


def test_an_impossible_shape_is_told_of_its_file(tmp_path):
    path = tmp_path / "b.binaryproto"
    blob = caffe_pb2.BlobProto(data=[1.0])
    blob.shape.dim.extend([-1])
    path.write_bytes(blob.SerializeToString())
    with pytest.raises(FileError, match=r"b\.binaryproto: .* has a negative size in its shape"):
        read_blob(path)
