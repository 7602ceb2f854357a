import resource
import sys

import numpy as np
import pytest

from sparknet.errors import FileError, MissingExtra, WeightsError
from sparknet.proto.model import Model
from sparknet.proto.model_file import read_model, write_model
from sparknet.proto.state_file import SolverState, read_state, write_state
from tests.goldens import GOLDENS, index
from tests.proto.test_model_file import array, model, net, same

h5py = pytest.importorskip("h5py")


def test_round_trip_with_gradients(tmp_path):
    path = tmp_path / "x.caffemodel.h5"
    one = model()
    write_model(path, one, write_diff=True)
    again = read_model(path, diffs=True)
    order = sorted(range(3), key=lambda i: one.net.layer[i].name)
    assert [layer.name for layer in again.net.layer] == ["a", "b", "empty"]
    for got, i in zip(again.arrays, order, strict=True):
        assert [None if x is None else x.tobytes() for x in got] == [
            None if x is None else x.tobytes() for x in one.arrays[i]
        ]
    assert again.diffs is not None
    assert one.diffs is not None
    assert again.diffs[0][0] is not None
    assert np.array_equal(again.diffs[0][0], one.diffs[0][0])
    assert list(again.net.layer[0].blobs[0].shape.dim) == [2, 3]
    assert [x.ctypes.data % 64 for layer in again.arrays for x in layer if x is not None] == [0] * 4
    write_model(path, one)
    zeros = read_model(path, diffs=True).diffs
    assert zeros is not None
    assert not any(x is not None and x.any() for layer in zeros for x in layer)


def test_a_shared_parameter_is_stored_with_its_owner(tmp_path):
    path = tmp_path / "x.h5"
    both = [array(2, 3), array(2)]
    write_model(path, Model(net("a:w,b", "b:w,c"), [list(both), list(both)]))
    with h5py.File(path) as file:
        assert sorted(file["data/a"]) == ["0", "1"]
        assert sorted(file["data/b"]) == ["1"]
    again = read_model(path)
    assert again.arrays[1][0] is None
    assert again.arrays[1][1] is not None


@pytest.mark.parametrize(
    "name", [case["name"] for case in index("solvers/snapshots") if case["format"] == "HDF5"]
)
def test_layout_equals_that_of_caffe(name, tmp_path):
    def listing(path):
        out = []

        def note(name, item):
            if isinstance(item, h5py.Dataset):
                kind = item.id.get_type()
                pad = kind.get_strpad() if item.dtype.kind == "S" else None
                content = np.asarray(item[()]).tobytes()
                out.append((name, item.shape, item.dtype, pad, content, item.chunks))
            else:
                out.append((name,))

        with h5py.File(path) as file:
            file.visititems(note)
        return out

    folder = GOLDENS / "solvers/snapshots" / name
    (model_path,) = folder.glob("*.caffemodel.h5")
    (state_path,) = folder.glob("*.solverstate.h5")
    ours = tmp_path / "x.h5"
    write_model(ours, read_model(model_path, diffs=True), write_diff="diff" in name)
    assert listing(ours) == listing(model_path)
    write_state(ours, read_state(state_path))
    assert listing(ours) == listing(state_path)


@pytest.mark.parametrize("name", ["conv/1x1", "/", ".", ""])
def test_names_that_hdf5_cannot_hold(tmp_path, name):
    path = tmp_path / "x.h5"
    one = Model(net("a"), [[array(2)]])
    one.net.layer[0].name = name
    with pytest.raises(WeightsError, match="rename it"):
        write_model(path, one)
    with pytest.raises(WeightsError, match="two layers of one name"):
        write_model(path, Model(net("a", "a"), [[], []]))
    assert list(tmp_path.iterdir()) == []


def huge(file):
    file.create_dataset("data/ip/0", shape=(1 << 20, 1 << 20), dtype="f4")


def huge_chunked(file):
    file.create_dataset("data/ip/0", shape=(1 << 18, 1 << 18), dtype="f4", chunks=(64, 64))


def bomb(file):
    file.create_dataset(
        "data/ip/0", data=np.zeros(1 << 23, np.float32), chunks=(1 << 20,), compression="gzip"
    )


def many_links(file):
    first = file.create_dataset("data/ip/0", data=np.zeros(1 << 16, np.float32))
    for number in range(1, 100):
        file["data/ip"][str(number)] = first


def cycle(file):
    file.create_group("data")["data"] = file["/"]
    file["data"]["ip"] = file["data"]


def soft(file):
    file.create_group("data/ip")["0"] = h5py.SoftLink("/data/ip/0")


def external_link(file):
    file.create_group("data/ip")["0"] = h5py.ExternalLink("/etc/passwd", "/x")


def external_data(file):
    storage = [("/etc/passwd", 0, 64)]
    file.create_dataset("data/ip/0", shape=(16,), dtype="f4", external=storage)


def virtual(file):
    layout = h5py.VirtualLayout(shape=(4,), dtype="f4")
    layout[:] = h5py.VirtualSource("/other.h5", "x", shape=(4,))
    file.create_virtual_dataset("data/ip/0", layout)


def strings(file):
    file["data/ip/0"] = np.array([b"abc"])


def compound(file):
    file["data/ip/0"] = np.zeros(3, [("a", "f4"), ("b", "f4")])


def group_for_data(file):
    file.create_group("data/ip/0")


def dataset_for_group(file):
    file["data"] = np.zeros(3, np.float32)


def misnamed(file):
    file["data/ip/00"] = np.zeros(3, np.float32)


def no_values(file):
    file["data/ip/0"] = h5py.Empty("f4")


def nothing(file):
    file.attrs["x"] = 1


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (huge, "claims"),
        (huge_chunked, "claims"),
        (bomb, "claims"),
        (many_links, "claims"),
        (cycle, "numbers are expected|not a"),
        (soft, "a link"),
        (external_link, "a link"),
        (external_data, "another file"),
        (virtual, "another file"),
        (strings, "numbers are expected"),
        (compound, "numbers are expected"),
        (group_for_data, "not a dataset"),
        (dataset_for_group, "not a group"),
        (misnamed, "'00'"),
        (no_values, "no values"),
        (nothing, "'data' is missing"),
    ],
)
def test_hostile_files(tmp_path, make, word):
    path = tmp_path / "x.caffemodel.h5"
    with h5py.File(path, "w") as file:
        make(file)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FileError, match=word) as caught:
        read_model(path)
    assert str(path) in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_other_storage_of_honest_numbers(tmp_path):
    path = tmp_path / "x.h5"
    values = array(40, 30)
    with h5py.File(path, "w") as file:
        file.create_dataset("data/a/0", data=values, chunks=(8, 8), compression="gzip")
        file.create_dataset("data/a/1", data=values.astype(">f8"))
        file.create_dataset("data/a/2", data=np.arange(5, dtype=np.int16))
        file.create_dataset("data/a/3", data=np.zeros((0, 3), np.float32))
    zipped, double, whole, empty = read_model(path).arrays[0]
    assert zipped is not None
    assert np.array_equal(zipped, values)
    assert double is not None
    assert np.array_equal(double, values)
    assert whole is not None
    assert whole.tolist() == [0, 1, 2, 3, 4]
    assert empty is not None
    assert empty.shape == (0, 3)


def test_damaged_files(tmp_path):
    path = tmp_path / "x.caffemodel.h5"
    write_model(path, model())
    whole = path.read_bytes()
    for length in (8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError, match="damaged"):
            read_model(path)
    for content in (b"", b"layer {}", bytes(1000)):
        path.write_bytes(content)
        with pytest.raises(FileError, match="damaged"):
            read_model(path)
    with pytest.raises(FileError, match="no such file"):
        read_state(tmp_path / "absent.h5")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("iter", -3),
        ("iter", 1.5),
        ("iter", [1, 2]),
        ("current_step", 1 << 40),
        ("learned_net", 3),
        ("learned_net", np.bytes_(b"\xff\xfe")),
    ],
)
def test_damaged_states(tmp_path, name, value):
    path = tmp_path / "x.solverstate.h5"
    write_state(path, SolverState(3, "m", 1, [array(2)]))
    with h5py.File(path, "a") as file:
        del file[name]
        file[name] = value
    with pytest.raises(FileError, match=f"'{name}'"):
        read_state(path)


def test_content_and_not_the_name_says_what_is_read(tmp_path):
    write_model(tmp_path / "x.h5", model())
    (tmp_path / "x.h5").rename(tmp_path / "x.caffemodel")
    assert read_model(tmp_path / "x.caffemodel").partial
    write_model(tmp_path / "y.caffemodel", model())
    same(read_model(tmp_path / "y.caffemodel"), model())


def test_without_h5py(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtra, match=r"sparknet\[hdf5\]"):
        write_model(tmp_path / "x.h5", model())
