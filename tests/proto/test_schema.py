"""The wire contract, field by field, and the classes made from it."""

import copy
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from sparknet.proto import caffe_pb2
from sparknet.proto._descriptor import SERIALIZED
from tests.goldens import ROOT

SCHEMA = Path(__file__).parent / "schema.json"
FieldProto = descriptor_pb2.FieldDescriptorProto


def described():
    """The schema in the form of schema.json."""
    schema = descriptor_pb2.FileDescriptorProto.FromString(SERIALIZED)
    found = {enum.name: _values(enum) for enum in schema.enum_type}
    for message in schema.message_type:
        found[message.name] = {field.name: _field(field) for field in message.field}
        for enum in message.enum_type:
            found[f"{message.name}.{enum.name}"] = _values(enum)
    return found


def _values(enum: descriptor_pb2.EnumDescriptorProto) -> dict[str, int]:
    return {value.name: value.number for value in enum.value}


def _field(field: descriptor_pb2.FieldDescriptorProto) -> str:
    kind = field.type_name.removeprefix(".caffe.")
    words = [
        str(field.number),
        FieldProto.Label.Name(field.label).removeprefix("LABEL_").lower(),
        kind or FieldProto.Type.Name(field.type).removeprefix("TYPE_").lower(),
    ]
    if field.HasField("default_value"):
        words.append(f"default={field.default_value}")
    if field.options.packed:
        words.append("packed")
    return " ".join(words)


def test_every_field_is_pinned():
    assert described() == json.loads(SCHEMA.read_text())


@pytest.mark.parametrize(
    ("field", "fact"),
    [
        ("BlobProto.data", "5 repeated float packed"),
        ("BlobShape.dim", "1 repeated int64 packed"),
        ("ClipParameter.max", "2 required float"),
        ("ConvolutionParameter.stride_h", "13 optional uint32"),
        ("Datum.float_data", "6 repeated float"),
        ("InfogainLossParameter.axis", "2 optional int32 default=1"),
        ("LayerParameter.clip_param", "148 optional ClipParameter"),
        ("LayerParameter.prior_box_param", "203 optional PriorBoxParameter"),
        ("NetParameter.layer", "100 repeated LayerParameter"),
        ("PoolingParameter.round_mode", "13 optional PoolingParameter.RoundMode default=CEIL"),
        ("SolverParameter.layer_wise_reduce", "41 optional bool default=true"),
        ("SolverParameter.weights", "42 repeated string"),
        ("V1LayerParameter.blob_share_mode", "1002 repeated V1LayerParameter.DimCheckMode"),
    ],
)
def test_facts_of_caffe(field, fact):
    message, name = field.split(".")
    assert described()[message][name] == fact


def test_names_that_scripts_use():
    assert caffe_pb2.Phase.Value("TRAIN") == caffe_pb2.TRAIN == 0
    assert caffe_pb2.Phase.Name(1) == "TEST"
    assert caffe_pb2.PoolingParameter.AVE == 1
    assert caffe_pb2.PoolingParameter.PoolMethod.Value("STOCHASTIC") == 2
    assert caffe_pb2.V1LayerParameter.LayerType.Value("CONVOLUTION") == 4
    assert caffe_pb2.NetState().phase == caffe_pb2.TEST


def test_messages_pickle_and_copy():
    net = caffe_pb2.NetParameter(name="n")
    net.layer.add(name="l").pooling_param.pool = caffe_pb2.PoolingParameter.AVE
    for twin in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert twin == net
        assert type(twin) is caffe_pb2.NetParameter
    layer = pickle.loads(pickle.dumps(net.layer[0]))
    assert type(layer) is type(net.layer[0]) is caffe_pb2.LayerParameter


def test_the_pool_is_private():
    """A real caffe registers a file of the same name in the default pool."""
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("caffe.NetParameter")


def test_the_pure_python_runtime_reads_and_writes():
    script = (
        "from sparknet.proto import caffe_pb2, parse_net, format_text\n"
        "net = parse_net('layers { type: RELU name: \"a\" loss_weight: 0.1 }')\n"
        "net = caffe_pb2.NetParameter.FromString(net.SerializeToString())\n"
        "assert type(net.layer[0]) is caffe_pb2.LayerParameter\n"
        "print(format_text(net), end='')"
    )
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert run.stderr == ""
    assert run.stdout == 'layer {\n  name: "a"\n  type: "ReLU"\n  loss_weight: 0.1\n}\n'


def test_the_build_step_writes_both_files(tmp_path):
    pytest.importorskip("grpc_tools")
    source = ROOT / "proto" / "compile.py"
    spec = importlib.util.spec_from_file_location("compile_schema", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.compile_schema(tmp_path / "out")
    written = tmp_path / "out" / "_descriptor.py"
    content = {}
    exec(written.read_text(), content)
    schema = descriptor_pb2.FileDescriptorProto.FromString(content["SERIALIZED"])
    assert len(schema.message_type) == len(caffe_pb2.DESCRIPTOR.message_types_by_name)
    types = (tmp_path / "out" / "caffe_pb2.pyi").read_text()
    assert "class NetParameter" in types
