"""From a net's description to its layers, shapes, splits, shared weights and gradients."""

from __future__ import annotations

from sparknet.graph.build import build, build_in_state
from sparknet.graph.draw import render, to_dot
from sparknet.graph.flops import Work, forward_flops, work
from sparknet.graph.graph import Graph, Node
from sparknet.graph.params import Learnable, ParamRef
from sparknet.graph.splits import insert_splits
from sparknet.graph.state import filter_net, net_state
from sparknet.graph.summary import html_summary, summary

__all__ = [
    "Graph",
    "Learnable",
    "Node",
    "ParamRef",
    "Work",
    "build",
    "build_in_state",
    "filter_net",
    "forward_flops",
    "html_summary",
    "insert_splits",
    "net_state",
    "render",
    "summary",
    "to_dot",
    "work",
]
