from pathlib import Path

import numpy as np
import pytest

from sparknet import caffe
from sparknet.cli import main
from sparknet.errors import FileError, WeightsError
from sparknet.proto import caffe_pb2, wire
from sparknet.proto.model import Model, copy_arrays
from sparknet.proto.model_file import parse_model, read_model, write_model
from sparknet.proto.untrusted import unmarked
from sparknet.proto.upgrade import upgrade_net
from sparknet.proto.wire import encode_varint
from tests.goldens import GOLDENS, index

BINARY = index("formats/binary")


def net(*layers: str) -> caffe_pb2.NetParameter:
    """Layers in the current form; a word such as ip:a,b names a layer and its parameters."""
    out = caffe_pb2.NetParameter(name="net", force_backward=True)
    for word in layers:
        name, _, params = word.partition(":")
        layer = out.layer.add(name=name, type="InnerProduct", bottom=["x"], top=[name])
        for param in params.split(",") if params else ():
            layer.param.add(name=param)
        layer.inner_product_param.num_output = 2
    return out


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def model() -> Model:
    return Model(
        net("a", "empty", "b"),
        [[array(2, 3), array(2)], [], [array(4, 2, 1, 1), array()]],
        [[array(2, 3), array(2)], [], [array(4, 2, 1, 1), array()]],
    )


def same(got: Model, want: Model) -> None:
    assert [layer.name for layer in got.net.layer] == [layer.name for layer in want.net.layer]
    for ours, theirs in zip(got.arrays, want.arrays, strict=True):
        assert [None if a is None else (a.shape, a.tobytes()) for a in ours] == [
            None if a is None else (a.shape, a.tobytes()) for a in theirs
        ]


@pytest.mark.parametrize("case", BINARY, ids=lambda case: str(case["name"]))
def test_golden_parameters_after_a_copy(case):
    folder = GOLDENS / "formats/binary"
    stored = np.load(folder / f"{case['name']}.npz")
    keys = [key.removeprefix("param/") for key in stored if key.startswith("param/")]
    targets: dict[str, list[tuple[int, ...]]] = {}
    for key in sorted(keys):
        targets.setdefault(key.rsplit("/", 1)[0], []).append(stored[f"param/{key}"].shape)
    copied = copy_arrays(read_model(folder / f"{case['name']}.caffemodel"), targets)
    found = 0
    for key in keys:
        layer, number = key.rsplit("/", 1)
        if key in case["unchanged_by_copy"]:
            assert layer not in copied
            continue
        got = copied[layer][int(number)]
        assert got is not None
        assert got.shape == stored[f"param/{key}"].shape
        assert got.tobytes() == stored[f"param/{key}"].tobytes()
        found += 1
    assert found == len(keys) - len(case["unchanged_by_copy"])
    assert found > 0


@pytest.mark.parametrize(
    "case", [case for case in BINARY if "upgraded" in case], ids=lambda case: str(case["name"])
)
def test_golden_upgrades_equal_those_of_caffe(case):
    ours = read_model(GOLDENS / "formats/binary" / f"{case['name']}.caffemodel")
    path = GOLDENS / "formats/binary" / case["upgraded"]
    assert unmarked(ours.message()) == caffe_pb2.NetParameter.FromString(path.read_bytes())
    same(ours, read_model(path))


def test_golden_hdf5_holds_the_same_as_binary():
    folder = GOLDENS / "formats/binary"
    binary, hdf5 = (read_model(folder / f"saved.caffemodel{end}") for end in ("", ".h5"))
    assert hdf5.partial
    assert sorted(one.name for one in binary.net.layer) == [one.name for one in hdf5.net.layer]
    for name, arrays in hdf5.by_name().items():
        for got, want in zip(arrays, binary.layer_arrays(name), strict=True):
            assert got is not None
            assert want is not None
            assert (got.shape, got.tobytes()) == (want.shape, want.tobytes())


def test_what_caffe_wrote_is_written_back_byte_for_byte(tmp_path):
    written = tmp_path / "x.caffemodel"
    for case in index("solvers/snapshots"):
        path = GOLDENS / "solvers/snapshots" / case["name"] / case["model"]
        if case["format"] == "HDF5":
            continue
        write_model(written, read_model(path, diffs=True), write_diff="diff" in case["name"])
        # The upgrade touches nets with BatchNorm even where they are current.
        net = upgrade_net(caffe_pb2.NetParameter.FromString(path.read_bytes()))
        assert written.read_bytes() == net.SerializeToString()
        if "batchnorm" not in case["name"]:
            assert written.read_bytes() == path.read_bytes()


REFUSED = [case for case in index("errors") if case["action"] == "copy"]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: str(case["name"]))
def test_golden_refusals(case):
    targets = {"ip": [(2, 3), (2,)]}
    with pytest.raises((FileError, WeightsError)) as caught:
        copy_arrays(read_model(GOLDENS / "errors" / case["weights"]), targets)
    assert case.get("layer", case["weights"]) in str(caught.value)
    kind = WeightsError if "layer" in case else FileError
    assert isinstance(caught.value, kind)


@pytest.mark.parametrize("diffs", [False, True])
def test_bytes_and_messages_equal_those_of_protobuf(tmp_path, diffs):
    one = model()
    path = tmp_path / "x.caffemodel"
    write_model(path, one, write_diff=diffs)
    message = caffe_pb2.NetParameter.FromString(path.read_bytes())
    assert message.SerializeToString() == path.read_bytes()
    if not diffs:
        one.diffs = None
    assert message == one.message()
    again = read_model(path, diffs=diffs)
    same(again, one)
    assert unmarked(again.message()) == message
    if diffs:
        assert again.diffs is not None
        assert one.diffs is not None
        same(Model(again.net, again.diffs), Model(one.net, one.diffs))
    same(parse_model(path.read_bytes()), one)
    assert not any(blob.data for layer in again.net.layer for blob in layer.blobs)


def test_arrays_that_are_not_plain_floats_are_written_right(tmp_path):
    path = tmp_path / "x.caffemodel"
    odd = [array(3, 2).T, np.arange(2.0)]
    write_model(path, Model(net("a"), [odd]))
    first, second = read_model(path).layer_arrays("a")
    assert first is not None
    assert second is not None
    assert np.array_equal(first, array(3, 2).T)
    assert np.array_equal(second, [0, 1])


def test_legacy_shapes_stay_legacy(tmp_path):
    path = tmp_path / "x.caffemodel"
    message = net("ip")
    message.layer[0].blobs.add(num=1, channels=1, height=2, width=3, data=[1.0] * 6)
    path.write_bytes(message.SerializeToString())
    write_model(path, read_model(path))
    assert path.read_bytes() == message.SerializeToString()
    assert unmarked(read_model(path).message()) == message


@pytest.mark.parametrize(
    ("target", "fits"),
    [
        ((2, 3), True),
        ((1, 2, 3), True),
        ((1, 1, 2, 3), True),
        ((1, 1, 1, 2, 3), False),
        ((3, 2), False),
        ((6,), False),
    ],
)
def test_old_four_axis_shapes_count_from_the_end(target, fits):
    message = net("ip")
    message.layer[0].blobs.add(num=1, channels=1, height=2, width=3, data=[1.0] * 6)
    loaded = parse_model(message.SerializeToString())
    if fits:
        (got,) = copy_arrays(loaded, {"ip": [target]})["ip"]
        assert got is not None
        assert got.shape == target
    else:
        with pytest.raises(WeightsError, match=r"'ip'.*shape"):
            copy_arrays(loaded, {"ip": [target]})


def test_a_new_shape_fits_exactly_or_not_at_all():
    one = Model(net("ip"), [[array(1, 1, 2, 3)]])
    with pytest.raises(WeightsError, match=r"\(1, 1, 2, 3\).*\(2, 3\)"):
        copy_arrays(one, {"ip": [(2, 3)]})
    with pytest.raises(WeightsError, match=r"1 parameter blobs.*needs 0"):
        copy_arrays(one, {"ip": []})
    assert copy_arrays(one, {"other": [(9,)]}) == {}


def test_partial_models_may_lack_shared_parameters_only():
    one = Model(net("a", "b"), [[array(2, 3), array(2)], [None, array(2)]], partial=True)
    targets = {"a": [(2, 3), (2,)], "b": [(2, 3), (2,)]}
    got = copy_arrays(one, targets, shared={("b", 0)})
    assert got["b"][0] is None
    assert got["b"][1] is not None
    with pytest.raises(WeightsError, match=r"'b'.*1 parameter blobs.*needs 2"):
        copy_arrays(one, targets)
    with pytest.raises(WeightsError, match="another layer"):
        one.message()


def test_a_blob_that_does_not_fit_its_shape_names_file_and_layer(tmp_path):
    message = net("fc7")
    message.layer[0].blobs.add(shape={"dim": [2]}, data=[1.0])
    path = tmp_path / "bad.caffemodel"
    path.write_bytes(message.SerializeToString())
    with pytest.raises(FileError, match=r"bad\.caffemodel: layer 'fc7' blob 0 holds 1 data"):
        read_model(path)


def damaged(path: Path) -> list[tuple[bytes, str]]:
    write_model(path, model())
    whole = path.read_bytes()
    group = b"\x0b" * 5000 + b"\x0c" * 5000
    return [
        (b"", "is empty"),
        (whole[:-1], "cut short"),
        (whole[: len(whole) // 2], "cut short"),
        (b'name: "x"\nlayer { }\n', "is a text file"),
        (b"layer {\n" * 100, "is a text file"),
        (wire.header(100, len(group)) + group, "wire type"),
        (wire.header(100, 4) + b"\x0a\x02\xff\xfe", "UTF-8|damaged"),
        (b"\xa0\x3f\x01", "no Caffe net"),
    ]


def test_damaged_files(tmp_path):
    path = tmp_path / "x.caffemodel"
    for content, word in damaged(path):
        path.write_bytes(content)
        with pytest.raises(FileError, match=word):
            read_model(path)
        with pytest.raises(FileError, match=word):
            parse_model(content)
    with pytest.raises(FileError, match="no such file"):
        read_model(tmp_path / "absent.caffemodel")
    with pytest.raises(FileError, match="is a folder, not a file"):
        read_model(tmp_path)


def test_every_cut_is_refused_or_gives_whole_layers(tmp_path):
    path = tmp_path / "x.caffemodel"
    write_model(path, model())
    whole = path.read_bytes()
    for length in range(1, len(whole)):
        try:
            part = parse_model(whole[:length])
        except FileError:
            continue
        for number, arrays in enumerate(part.arrays):
            assert len(arrays) == len(model().arrays[number])


def test_a_model_that_does_not_fit_its_net_is_refused(tmp_path):
    with pytest.raises(WeightsError, match=r"2 layers.*for 1"):
        Model(net("a", "b"), [[]])
    one = model()
    assert one.diffs is not None
    one.diffs[0][0] = array(3, 3)
    with pytest.raises(WeightsError, match=r"'a'.*\(2, 3\).*\(3, 3\)"):
        write_model(tmp_path / "x.caffemodel", one, write_diff=True)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(WeightsError, match="'nope'"):
        one.layer_arrays("nope")


@pytest.mark.parametrize("suffix", ["", ".h5"])
@pytest.mark.parametrize("call", [read_model, lambda path: write_model(path, model())])
def test_no_such_folder(tmp_path, suffix, call):
    with pytest.raises(FileError, match="no such file"):
        call(tmp_path / "absent" / f"x{suffix}")


@pytest.mark.slow
def test_more_than_two_gigabytes(tmp_path):
    """The file has holes, so that it takes no room on the disk."""
    shape, path = (1 << 15, 17_000), tmp_path / "big.caffemodel"
    message = net("fc")
    message.layer[0].blobs.add(shape={"dim": shape})
    blob = message.layer[0].blobs[0].SerializeToString() + wire.header(5, 4 * np.prod(shape).item())
    size = len(blob) + 4 * np.prod(shape).item()
    name = b"\x0a\x02fc"
    head = wire.header(7, size)
    start = wire.header(100, len(name) + len(head) + size) + name + head + blob
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size - len(blob))
        file.seek(-4, 2)
        file.write(np.float32(7).tobytes())
    assert path.stat().st_size > 2 << 30
    (got,) = read_model(path).layer_arrays("fc")
    assert got is not None
    assert got.shape == shape
    assert (got[0, 0], got[-1, -1]) == (0, 7)


def raw_model(path: Path, kind: int, raw: bytes, shape: bytes = b"\x02\x03") -> Path:
    """A caffemodel of NVIDIA's Caffe, byte by byte: raw_data_type is field 10, raw_data 12."""

    def field(number: int, inner: bytes) -> bytes:
        return encode_varint(number << 3 | 2) + encode_varint(len(inner)) + inner

    blob = field(7, field(1, shape)) + bytes([10 << 3, kind]) + field(12, raw)
    path.write_bytes(field(100, field(1, b"ip") + field(2, b"InnerProduct") + field(7, blob)))
    return path


@pytest.mark.parametrize(
    ("kind", "dtype"), [(0, "<f8"), (1, "<f4"), (2, "<f2"), (3, "<i4"), (4, "<u4")]
)
def test_raw_numbers_of_nvidias_caffe(kind, dtype, tmp_path):
    numbers = np.array([[1, 2.5, 3], [4, 5, 60000]], dtype)
    path = raw_model(tmp_path / "m.caffemodel", kind, numbers.tobytes())
    model = read_model(path, diffs=True)
    (array,) = model.layer_arrays("ip")
    assert array is not None
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, numbers.astype(np.float32))
    assert model.diffs is not None
    np.testing.assert_array_equal(model.diffs[0][0], np.zeros((2, 3)))
    message = caffe_pb2.NetParameter.FromString(path.read_bytes())
    np.testing.assert_array_equal(caffe.io.blobproto_to_array(message.layer[0].blobs[0]), numbers)


@pytest.mark.parametrize(
    ("kind", "raw", "said"),
    [
        (2, b"\0" * 11, r"holds 11 bytes of raw data, its shape \(2, 3\) needs 12"),
        (1, b"\0" * 12, r"holds 12 bytes of raw data, its shape \(2, 3\) needs 24"),
        (5, b"\0" * 6, "raw data of type 5: no numbers"),
    ],
)
def test_raw_numbers_that_do_not_fit(kind, raw, said, tmp_path):
    with pytest.raises(FileError, match=rf"layer 'ip' blob 0 .*{said}"):
        read_model(raw_model(tmp_path / "m.caffemodel", kind, raw))


def test_halves_are_written_and_read(tmp_path):
    """A file of half the size, from the command line; what no half holds stays."""
    whole, half = str(tmp_path / "whole.caffemodel"), str(tmp_path / "half.caffemodel")
    weights = np.random.default_rng(0).normal(size=(100, 90)).astype(np.float32)
    layer = caffe_pb2.LayerParameter(name="ip", type="InnerProduct")
    model = Model(caffe_pb2.NetParameter(layer=[layer]), [[weights]])
    write_model(whole, model)
    assert main(["convert", whole, half, "--half"]) == 0
    assert 0.5 < Path(half).stat().st_size / Path(whole).stat().st_size < 0.505
    (found,) = read_model(half).layer_arrays("ip")
    np.testing.assert_array_equal(found, weights.astype(np.float16).astype(np.float32))
    assert main(["convert", half, str(tmp_path / "again.caffemodel")]) == 0
    (again,) = read_model(tmp_path / "again.caffemodel").layer_arrays("ip")
    np.testing.assert_array_equal(again, found)
    weights[3, 4] = 7e4
    for types in (True, ("Convolution",)):
        write_model(half, model, half=types)
        np.testing.assert_array_equal(read_model(half).layer_arrays("ip")[0], weights)
    weights[3, 4] = 7
    write_model(half, model, half=("Convolution",))
    np.testing.assert_array_equal(read_model(half).layer_arrays("ip")[0], weights)
    write_model(half, model, half=("InnerProduct",))
    assert (read_model(half).layer_arrays("ip")[0] != weights).any()
    with pytest.raises(FileError, match="would hold no halves"):
        write_model(tmp_path / "x.h5", model, half=True)
