"""The region proposals of Faster R-CNN: what its prototxts name as Python layers of a module
`rpn`, and what the layer type Proposal computes.

Ren et al., NIPS 2015; the rules and constants are those of py-faster-rcnn (lib/rpn,
lib/fast_rcnn/config.py).
"""

from __future__ import annotations

MODULES = {
    "rpn.proposal_layer": "sparknet.layers.rpn.proposal_layer",
    "rpn.anchor_target_layer": "sparknet.layers.rpn.anchor_target_layer",
    "rpn.proposal_target_layer": "sparknet.layers.rpn.proposal_target_layer",
}
"""What stands in for a module that a net names and that cannot be imported."""
