"""Where a value is cut in a message, and the phase that a net's sources serve."""

import pytest

from sparknet.caffe import TEST, TRAIN
from sparknet.dsl.checks import served_phase
from sparknet.dsl.fields import short_repr
from sparknet.proto import caffe_pb2, parse_net

SOURCE = """layer {{ name: "{0}" type: "Input" top: "x" {1}
  input_param {{ shape {{ dim: 1 dim: 2 }} }} }}"""
USER = 'layer { name: "r" type: "ReLU" bottom: "x" top: "y" }'


@pytest.mark.parametrize(
    ("rule", "phase"),
    [("", TRAIN), ("include { phase: TRAIN }", TRAIN), ("include { phase: TEST }", TEST)],
)
def test_the_phase_that_a_nets_sources_serve(rule, phase):
    assert served_phase(parse_net(SOURCE.format("in", rule) + USER)) == phase


def test_a_net_without_layers_is_one_for_training():
    assert served_phase(caffe_pb2.NetParameter()) == TRAIN


@pytest.mark.parametrize(("length", "shown"), [(58, "x" * 58), (59, "x" * 56 + "...")])
def test_values_are_shown_up_to_a_length(length, shown):
    expected = f"'{shown}'" if length == 58 else f"'{shown}"
    assert short_repr("x" * length) == expected
