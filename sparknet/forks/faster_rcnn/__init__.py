"""Fast R-CNN, Faster R-CNN (Ren et al., 2015) and R-FCN (Dai et al., 2016)."""

from __future__ import annotations

TYPES = {
    "BoxAnnotatorOHEM": "box_annotator_ohem",
    "Proposal": "proposal",
    "ProposalTarget": "proposal_target",
    "PSROIPooling": "psroi_pooling",
    "ROIAlign": "roi_align",
    "ROIPooling": "roi_pooling",
    "SmoothL1Loss": "smooth_l1_loss",
    "SmoothL1LossOHEM": "smooth_l1_loss_ohem",
    "SoftmaxWithLossOHEM": "softmax_with_loss_ohem",
}
"""A layer type, and its module here."""

HOSTS = {
    "Proposal",
    "ProposalTarget",
}
"""Those that Python computes, in `hosts`."""

MODULES = {
    "rpn.proposal_layer": "sparknet.forks.faster_rcnn.rpn.proposal_layer",
    "rpn.anchor_target_layer": "sparknet.forks.faster_rcnn.rpn.anchor_target_layer",
    "rpn.proposal_target_layer": "sparknet.forks.faster_rcnn.rpn.proposal_target_layer",
}
"""What stands in for a module that a net names and that cannot be imported."""
