"""The region proposals of Faster R-CNN: what its prototxts name as Python layers of a module
`rpn`, and what the layer type Proposal computes.

Ren et al., NIPS 2015; the rules and constants are those of py-faster-rcnn (lib/rpn,
lib/fast_rcnn/config.py).
"""
