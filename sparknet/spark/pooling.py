"""Pooling: one vector for each text, made of the vectors of its tokens."""

from __future__ import annotations

from sparknet.errors import SpecError
from sparknet.net.entries import NetMessage
from sparknet.net.fed import FedNet
from sparknet.proto import parse_net

POOLED, NORMALIZED = "pooled", "normalized"
EMBEDDINGS = (POOLED, NORMALIZED)
KINDS = ("mean", "cls", "max")
_USUAL = ("last_hidden_state", "token_embeddings", "hidden_states")
_AXES = 3

_MEAN = """
layer {{ name: "pooled_rows" type: "Reshape" bottom: "{mask}" top: "pooled_rows"
  reshape_param {{ shape {{ dim: 0 dim: 1 dim: -1 }} }} }}
layer {{ name: "pooled_sums" type: "MatMul" bottom: "pooled_rows" bottom: "{of}"
  top: "pooled_sums" }}
layer {{ name: "pooled_sum" type: "Reshape" bottom: "pooled_sums" top: "pooled_sum"
  reshape_param {{ shape {{ dim: 0 dim: -1 }} }} }}
layer {{ name: "pooled_count" type: "Reduction" bottom: "{mask}" top: "pooled_count"
  reduction_param {{ axis: 1 }} }}
layer {{ name: "pooled_some" type: "Clip" bottom: "pooled_count" top: "pooled_some"
  clip_param {{ min: 1e-9 max: 1e30 }} }}
layer {{ name: "pooled_share" type: "Power" bottom: "pooled_some" top: "pooled_share"
  power_param {{ power: -1 }} }}
layer {{ name: "pooled" type: "Scale" bottom: "pooled_sum" bottom: "pooled_share" top: "pooled"
  scale_param {{ axis: 0 }} }}
"""
_MAX = """
layer {{ name: "pooled_hidden" type: "Power" bottom: "{mask}" top: "pooled_hidden"
  power_param {{ scale: 1e9 shift: -1e9 }} }}
layer {{ name: "pooled_seen" type: "Bias" bottom: "{of}" bottom: "pooled_hidden" top: "pooled_seen"
  bias_param {{ axis: 0 }} }}
layer {{ name: "pooled_most" type: "ArgMax" bottom: "pooled_seen" top: "pooled_most"
  argmax_param {{ axis: 1 out_max_val: true }} }}
layer {{ name: "pooled" type: "Reshape" bottom: "pooled_most" top: "pooled"
  reshape_param {{ shape {{ dim: 0 dim: -1 }} }} }}
"""
_CLS = """
layer {{ name: "pooled_first" type: "Gather" bottom: "{of}" top: "pooled_first"
  gather_param {{ axis: 1 index: 0 }} }}
layer {{ name: "pooled" type: "Reshape" bottom: "pooled_first" top: "pooled"
  reshape_param {{ shape {{ dim: 0 dim: -1 }} }} }}
"""
_NORM = """
layer {{ name: "pooled_square" type: "Reduction" bottom: "pooled" top: "pooled_square"
  reduction_param {{ axis: 1 operation: SUMSQ }} }}
layer {{ name: "pooled_least" type: "Clip" bottom: "pooled_square" top: "pooled_least"
  clip_param {{ min: 1e-24 max: 1e30 }} }}
layer {{ name: "pooled_factor" type: "Power" bottom: "pooled_least" top: "pooled_factor"
  power_param {{ power: -0.5 }} }}
layer {{ name: "normalized" type: "Scale" bottom: "pooled" bottom: "pooled_factor" top: "normalized"
  scale_param {{ axis: 0 }} }}
"""


def pooled(tested: FedNet, kind: str, of: str | None, mask: str | None) -> NetMessage:
    """The net with `pooled`, one vector for each text, and `normalized`, of length 1.

    ``of`` is the blob of texts x tokens x numbers; ``mask`` is the input that says which tokens
    are none.
    """
    if kind not in KINDS:
        raise SpecError(f"pooling is {kind!r}: one of {', '.join(KINDS)} is needed")
    shapes, _ = tested.layout()
    taken = set(EMBEDDINGS).intersection(shapes)
    if taken:
        raise SpecError(f"the net has a blob '{min(taken)}' already: leave pooling out")
    if of is None:
        outputs = [*_USUAL, *tested.net.outputs]
        fitting = [one for one in outputs if len(shapes.get(one, ())) == _AXES]
        if not fitting:
            raise SpecError(
                "pooling needs a blob of texts x tokens x numbers, and no output is one: name one "
                "with pooled="
            )
        of = fitting[0]
    elif len(shapes.get(of, ())) != _AXES:
        raise SpecError(f"pooled is {of!r}: no blob of texts x tokens x numbers")
    if mask is None and kind != "cls":
        raise SpecError(f"pooling='{kind}' needs an input that is a mask, as 'attention_mask'")
    text = {"mean": _MEAN, "cls": _CLS, "max": _MAX}[kind] + _NORM
    made = NetMessage()
    made.CopyFrom(tested.described)
    made.layer.extend(parse_net(text.format(of=of, mask=mask)).layer)
    return made
