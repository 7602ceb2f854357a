from pathlib import Path

import pytest

from sparknet.errors import SpecError
from sparknet.graph import build, build_in_state, filter_net, net_state
from sparknet.graph.state import meets
from sparknet.layers.layer import TEST, TRAIN
from sparknet.proto import caffe_pb2, parse_net, read_net
from tests.goldens import GOLDENS, index
from tests.graph.nets import source, text

FILTER = GOLDENS / "formats" / "filter"
STATES = [
    pytest.param(entry["name"], state, id=f"{entry['name']}-{number}")
    for entry in index("formats/filter")
    for number, state in enumerate(entry["states"])
]


@pytest.mark.parametrize(("name", "state"), STATES)
def test_layers_and_splits_of_each_state_are_caffes(name, state):
    net = read_net(Path(FILTER / f"{name}.prototxt"))
    phase = TRAIN if state["phase"] == "TRAIN" else TEST
    graph = build(net, phase, state["level"], state["stages"])
    assert graph.layers == state["layers"]
    assert list(graph.blob_names) == state["blobs"]
    assert list(graph.inputs) == state["inputs"]
    assert list(graph.outputs) == state["outputs"]
    assert {node.name: list(node.bottoms) for node in graph.nodes} == state["bottoms"]
    assert {node.name: list(node.tops) for node in graph.nodes} == state["tops"]


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        ({}, True),
        ({"phase": TRAIN}, False),
        ({"phase": TEST}, True),
        ({"min_level": 3}, True),
        ({"min_level": 4}, False),
        ({"max_level": 3}, True),
        ({"max_level": 2}, False),
        ({"stage": ["a"]}, True),
        ({"stage": ["a", "b"]}, True),
        ({"stage": ["a", "c"]}, False),
        ({"not_stage": ["c"]}, True),
        ({"not_stage": ["c", "b"]}, False),
        ({"phase": TEST, "min_level": 1, "max_level": 5, "stage": ["b"], "not_stage": ["c"]}, True),
    ],
)
def test_a_rule_is_met_when_every_part_is(rule, met):
    state = caffe_pb2.NetState(phase=caffe_pb2.TEST, level=3, stage=["a", "b"])
    assert meets(state, caffe_pb2.NetStateRule(**rule)) is met


def test_opening_a_net_replaces_phase_and_level_and_adds_stages():
    net = parse_net('state { phase: TEST level: 5 stage: "file" }')
    state = net_state(net, TRAIN, 2, ["mine"])
    assert (state.phase, state.level, list(state.stage)) == (TRAIN, 2, ["file", "mine"])
    assert list(net_state(net, TRAIN, stages="one").stage) == ["file", "one"]
    assert net.state.level == 5


def test_a_settled_net_is_built_in_its_own_state():
    rules = ' include { phase: TEST min_level: 3 stage: "s" }'
    net = parse_net('state { phase: TEST level: 4 stage: "s" }' + text(source("x", 2) + rules))
    graph = build_in_state(net)
    assert (graph.phase, graph.layers) == (TEST, ["in_x"])
    assert build_in_state(net, caffe_pb2.NetState(phase=caffe_pb2.TRAIN)).layers == []


def test_a_layers_own_phase_stands_above_the_nets():
    net = parse_net(
        text(source("x", 2, 3), 'name: "d" type: "Dropout" bottom: "x" top: "y" phase: TEST')
    )
    graph = build(net, TRAIN)
    assert [node.phase for node in graph.nodes] == [TRAIN, TEST]
    assert [layer.phase for layer in graph.parameter.layer] == [TRAIN, TEST]


def test_filtering_leaves_the_description_as_it_was():
    net = parse_net(text(source("x", 2) + " include { phase: TEST }"))
    filtered = filter_net(net, net_state(net, TRAIN))
    assert (len(net.layer), len(filtered.layer)) == (1, 0)
    assert not net.HasField("state")


def test_a_level_beyond_32_bits_is_refused():
    with pytest.raises(SpecError, match="level 4294967296"):
        build(parse_net(""), level=2**32)
