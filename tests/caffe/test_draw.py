from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from sparknet.caffe import draw
from sparknet.errors import FileError, MissingExtra, SpecError
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


def test_labels() -> None:
    assert draw.get_layer_label(CONV, "TB") == '"c (Convolution) kernel size: 3 stride: 1 pad: 0"'
    assert draw.get_layer_label(RELU, "LR") == r'"r\n(ReLU)"'
    assert draw.get_layer_label(POOL, "BT") == '"p (Pooling AVE) kernel size: 2 stride: 2 pad: 0"'
    assert draw.get_layer_label(IP, "TB", True) == '"ip (InnerProduct) lr mult: 1.0, 1.0"'
    assert draw.get_layer_label(CONV, "TB", True).endswith('lr mult: 2.0, 1.0"')
    labels = [draw.get_edge_label(layer) for layer in NET.layer]
    assert labels == ["Batch 8", "4", '""', '""', "3"]
    assert draw.choose_color_by_layertype("Pooling") == "#FF9900"
    assert draw.choose_color_by_layertype("ReLU") == "#6495ED"


def test_dot_text() -> None:
    text = draw.draw_net(NET, "LR", "dot").decode()
    assert text.startswith('digraph "n" {\n  rankdir="LR";\n')
    assert '"c_Convolution" -> "c_blob" [label="4"];' in text
    assert '"r_ReLU" [label="r\\n(ReLU)", shape="record", fillcolor="#90EE90"' in text
    assert text.count('\n  "c_blob" [label') == 1


def test_phases() -> None:
    text = draw.draw_net(NET, "LR", "raw", phase=caffe_pb2.TEST).decode()
    assert "d_Data" not in text
    assert "p_Pooling" not in text
    assert "c_Convolution" in text
    both = parse_net(
        'layer { name: "x" type: "A" include { phase: TEST } exclude { phase: TRAIN } }'
    )
    with pytest.raises(ValueError, match="layer 'x' has both include and exclude"):
        draw.draw_net(both, "LR", "dot", phase=0)


def test_hostile_names() -> None:
    net = caffe_pb2.NetParameter(name='"]; evil [')
    net.layer.add(name='a"{b}|\\\n\x00', type="T", top=['"'])
    text = draw.draw_net(net, "TB", "dot").decode()
    assert text.startswith('digraph "\\"]; evil [" {')
    assert 'label="a\\"\\{b\\}\\|\\\\\\n? (T)"' in text


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'bmp' is none of the drawing formats"):
        draw.draw_net(NET, "LR", "bmp")
    with pytest.raises(SpecError, match="rankdir 'XY'"):
        draw.draw_net(NET, "XY", "dot")
    with pytest.raises(FileError, match="nowhere"):
        draw.draw_net_to_file(NET, str(tmp_path / "nowhere" / "x.dot"))
    with pytest.raises(SpecError, match="no learning rate multipliers"):
        draw.get_layer_lr_mult(RELU)


def test_rates_of_weights_and_biases() -> None:
    layer = caffe_pb2.LayerParameter(name="c", type="Convolution")
    for rates, want in (([], (1, 1)), ([2], (2, 1)), ([2, 3], (2, 3))):
        del layer.param[:]
        layer.param.extend(caffe_pb2.ParamSpec(lr_mult=rate) for rate in rates)
        assert draw.get_layer_lr_mult(layer) == want
    layer.param.add()
    with pytest.raises(SpecError, match="layer 'c': 3 param entries, not 2"):
        draw.get_layer_lr_mult(layer)


def test_files(tmp_path: Path) -> None:
    draw.draw_net_to_file(NET, str(tmp_path / "x.raw"))
    assert (tmp_path / "x.raw").read_bytes() == draw.draw_net(NET, "LR", "dot")
    if shutil.which("dot"):
        draw.draw_net_to_file(NET, str(tmp_path / "x.svg"))
        assert b"<svg" in (tmp_path / "x.svg").read_bytes()
    else:
        with pytest.raises(FileError, match="Graphviz"):
            draw.draw_net(NET, "LR", "png")


def test_pydot_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(MissingExtra, match=r"sparknet\[draw\]"):
        draw.get_pydot_graph(NET, "LR")
