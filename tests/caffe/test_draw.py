"""caffe.draw, and what a notebook shows of nets, blobs and records."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sparknet import caffe
from sparknet.caffe import draw, io
from sparknet.errors import ArrayError, FileError, MissingExtra, SpecError
from sparknet.loaders import ArrayRecords, Batches, Chain, ImageFiles, NumpyFiles, Subset
from sparknet.proto import caffe_pb2, parse_net

NET = parse_net("""
name: "n"
layer { name: "d" type: "Data" top: "data" data_param { batch_size: 8 } include { phase: TRAIN } }
layer { name: "c" type: "Convolution" bottom: "data" top: "c" param { lr_mult: 2 }
        convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer { name: "p" type: "Pooling" bottom: "c" top: "p" exclude { phase: TEST }
        pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "p" top: "ip"
        inner_product_param { num_output: 3 } }
""")
DATA, CONV, RELU, POOL, IP = NET.layer


def test_labels():
    assert draw.get_layer_label(CONV, "TB") == '"c (Convolution) kernel size: 3 stride: 1 pad: 0"'
    assert draw.get_layer_label(RELU, "LR") == r'"r\n(ReLU)"'
    assert draw.get_layer_label(POOL, "BT") == '"p (Pooling AVE) kernel size: 2 stride: 2 pad: 0"'
    assert draw.get_layer_label(IP, "TB", True) == '"ip (InnerProduct) lr mult: 1.0, 1.0"'
    assert draw.get_layer_label(CONV, "TB", True).endswith('lr mult: 2.0, 1.0"')
    labels = [draw.get_edge_label(layer) for layer in NET.layer]
    assert labels == ["Batch 8", "4", '""', '""', "3"]
    assert draw.choose_color_by_layertype("Pooling") == "#FF9900"
    assert draw.choose_color_by_layertype("ReLU") == "#6495ED"


def test_dot_text():
    text = draw.draw_net(NET, "LR", "dot").decode()
    assert text.startswith('digraph "n" {\n  rankdir="LR";\n')
    assert '"c_Convolution" -> "c_blob" [label="4"];' in text
    assert '"r_ReLU" [label="r\\n(ReLU)", shape="record", fillcolor="#90EE90"' in text
    assert text.count('\n  "c_blob" [label') == 1


def test_phases():
    text = draw.draw_net(NET, "LR", "raw", phase=caffe_pb2.TEST).decode()
    assert "d_Data" not in text
    assert "p_Pooling" not in text
    assert "c_Convolution" in text
    both = parse_net(
        'layer { name: "x" type: "A" include { phase: TEST } exclude { phase: TRAIN } }'
    )
    with pytest.raises(ValueError, match="layer 'x' has both include and exclude"):
        draw.draw_net(both, "LR", "dot", phase=0)


def test_hostile_names():
    net = caffe_pb2.NetParameter(name='"]; evil [')
    net.layer.add(name='a"{b}|\\\n\x00', type="T", top=['"'])
    text = draw.draw_net(net, "TB", "dot").decode()
    assert text.startswith('digraph "\\"]; evil [" {')
    assert 'label="a\\"\\{b\\}\\|\\\\\\n? (T)"' in text


def test_refusals(tmp_path):
    with pytest.raises(SpecError, match="'bmp' is none of the drawing formats"):
        draw.draw_net(NET, "LR", "bmp")
    with pytest.raises(SpecError, match="rankdir 'XY'"):
        draw.draw_net(NET, "XY", "dot")
    with pytest.raises(FileError, match="nowhere"):
        draw.draw_net_to_file(NET, str(tmp_path / "nowhere" / "x.dot"))
    with pytest.raises(SpecError, match="no learning rate multipliers"):
        draw.get_layer_lr_mult(RELU)


def test_rates_of_weights_and_biases():
    layer = caffe_pb2.LayerParameter(name="c", type="Convolution")
    for rates, want in (([], (1, 1)), ([2], (2, 1)), ([2, 3], (2, 3))):
        del layer.param[:]
        layer.param.extend(caffe_pb2.ParamSpec(lr_mult=rate) for rate in rates)
        assert draw.get_layer_lr_mult(layer) == want
    layer.param.add()
    with pytest.raises(SpecError, match="layer 'c': 3 param entries, not 2"):
        draw.get_layer_lr_mult(layer)


def test_files(tmp_path):
    draw.draw_net_to_file(NET, str(tmp_path / "x.raw"))
    assert (tmp_path / "x.raw").read_bytes() == draw.draw_net(NET, "LR", "dot")
    if shutil.which("dot"):
        draw.draw_net_to_file(NET, str(tmp_path / "x.svg"))
        assert b"<svg" in (tmp_path / "x.svg").read_bytes()
    else:
        with pytest.raises(FileError, match="Graphviz"):
            draw.draw_net(NET, "LR", "png")


def test_pydot_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(MissingExtra, match=r"sparknet\[draw\]"):
        draw.get_pydot_graph(NET, "LR")


TEXT = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [2, 3, 4, 4] } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
  num_output: 5 kernel_size: 3 weight_filler { type: "constant" value: 2 }
  bias_filler { type: "constant" value: -1 } } }
layer { name: "empty" type: "ReLU" bottom: "conv" top: "relu" }
"""


def test_nets_and_blobs(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(TEXT)
    net = caffe.Net(str(path), caffe.TEST)
    assert repr(net) == (
        "<caffe.Net 'small', TEST: 3 layers, 140 parameters, inputs ['data'], outputs ['relu']>"
    )
    assert "<table>" in net._repr_html_()
    assert repr(net.blobs["data"]) == "<Blob (2, 3, 4, 4) float32>"
    assert repr(net.params["conv"]) == (
        "[<Blob (5, 3, 3, 3) float32, 2 to 2>, <Blob (5,) float32, -1 to -1>]"
    )
    net.params["conv"][1].data[2] = 0.12345
    assert repr(net.params["conv"][1]) == "<Blob (5,) float32, -1 to 0.1235>"


def test_the_extension_of_notebooks():
    code = "import sparknet; sparknet.load_ipython_extension(None); import caffe; print(caffe.Net)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "<class 'sparknet.caffe.net.Net'>\n"


def test_records_and_batches():
    records = ArrayRecords(data=np.zeros((9, 3, 4), np.uint8), label=np.arange(9))
    assert repr(records) == "<9 records, data (3, 4) uint8, label () int64>"
    batches = Batches(records, 4)
    try:
        assert repr(batches) == "<Batches of 4 of 9 records, data (3, 4) uint8, label () int64>"
    finally:
        batches.close()
    chosen = Subset(records, [1, 3])
    assert repr(chosen) == "<Subset: 2 records, data (3, 4) uint8, label () int64>"
    assert (
        repr(Chain([chosen, records])) == "<Chain: 11 records, data (3, 4) uint8, label () int64>"
    )


def test_records_of_files(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        image.new("RGB", (5, 4)).save(tmp_path / name / "1.png")
    told = "<ImageFiles: 2 records, data (3, 4, 5) uint8, label () int32>"
    assert repr(ImageFiles(tmp_path)) == told
    for name in ("cat", "dog"):
        (tmp_path / name / "1.png").write_bytes(b"no picture")
    assert repr(ImageFiles(tmp_path)).startswith(f"<ImageFiles: 2 records: {tmp_path}/cat/1.png: ")
    np.savez(tmp_path / "few.npz", data=np.zeros((4, 2), np.float32))
    assert repr(NumpyFiles(tmp_path / "few.npz")) == "<NumpyFiles: 4 records, data (2,) float32>"


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
SHAPES = arrays.array_shapes(min_dims=1, max_dims=5, max_side=4)


@given(arrays.arrays(np.float32, SHAPES, elements=FLOATS))
def test_blobs_round_trip(array):
    blob = io.array_to_blobproto(array, array * 0 - 1)
    assert list(blob.shape.dim) == list(array.shape)
    assert list(blob.data) == array.ravel().tolist()
    back = io.blobproto_to_array(blob)
    assert back.dtype == np.float64
    assert np.array_equal(back, array)
    assert (io.blobproto_to_array(blob, return_diff=True) == -1).all()


@given(arrays.arrays(np.float64, (2, 3, 4), elements=FLOATS))
def test_datums_round_trip(array):
    datum = io.array_to_datum(array, 3)
    assert (datum.channels, datum.height, datum.width, datum.label) == (2, 3, 4, 3)
    assert list(datum.float_data) == array.ravel().tolist()
    assert np.array_equal(io.datum_to_array(datum), array)


def test_bytes_of_a_datum():
    array = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    datum = io.array_to_datum(array[:, ::-1])
    assert not datum.HasField("label")
    assert datum.data == array[:, ::-1].tobytes()
    back = io.datum_to_array(datum)
    assert back.dtype == np.uint8
    assert np.array_equal(back, array[:, ::-1])
    back[0] = 0


def test_odd_memory_layouts_and_types():
    array = np.arange(24).reshape(2, 3, 4).T
    assert np.array_equal(io.blobproto_to_array(io.array_to_blobproto(array)), array)
    assert np.array_equal(io.datum_to_array(io.array_to_datum(array)), array)


def test_doubles():
    blob = caffe_pb2.BlobProto(double_data=[1.5, 2.5], shape={"dim": [2]})
    assert io.blobproto_to_array(blob).tolist() == [1.5, 2.5]


def test_vectors():
    list_ = [np.ones((2, 1)), np.zeros(3)]
    data = io.arraylist_to_blobprotovector_str(list_)
    assert data == io.arraylist_to_blobprotovecor_str(list_)
    back = io.blobprotovector_str_to_arraylist(data)
    assert [a.tolist() for a in back] == [[[1.0], [1.0]], [0.0, 0.0, 0.0]]


def test_arrays_refusals():
    with pytest.raises(ArrayError, match=r"shape \(2, 3\) but holds 1 numbers"):
        io.blobproto_to_array(caffe_pb2.BlobProto(data=[1], shape={"dim": [2, 3]}))
    with pytest.raises(ValueError, match=r"shape \(-1, -1, 0, 0\) but holds 1 numbers"):
        io.blobproto_to_array(caffe_pb2.BlobProto(data=[1], num=-1, channels=-1))
    with pytest.raises(ArrayError, match="holds 0 numbers"):
        io.datum_to_array(caffe_pb2.Datum(channels=1 << 20, height=1 << 20, width=1))
    with pytest.raises(ValueError, match="3-dimensional array, not one of shape"):
        io.array_to_datum(np.zeros(3))
    with pytest.raises(ArrayError, match="encoded image"):
        io.datum_to_array(caffe_pb2.Datum(encoded=True, data=b"x"))
