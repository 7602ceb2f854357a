"""NetParameter → Graph.  Caffe: net.cpp, Init."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sparknet.errors import LayerError, clean, warn
from sparknet.graph.graph import Graph, Node
from sparknet.graph.params import ParamRef, Params
from sparknet.graph.splits import insert_splits
from sparknet.graph.state import filter_net, net_state
from sparknet.graph.unknown import LeftOut, check_policy, leave_out_unknown
from sparknet.layers import Layer, Plan, Shape, make
from sparknet.layers.crop import align_crops
from sparknet.layers.layer import TRAIN
from sparknet.proto import ForkWarning, caffe_pb2, needs_upgrade, upgrade_net


@dataclass
class Flow:
    """One layer, as far as gradients depend on it; blobs are numbers."""

    bottoms: Sequence[int]
    tops: Sequence[int]
    is_loss: bool
    """A top carries a loss weight."""
    param_needs: bool
    """A parameter has a learning rate."""
    propagate_down: Sequence[bool] = ()
    """The layer's ``propagate_down``: empty, or one entry for each bottom."""
    is_constant: bool = False
    """The tops do not depend on the bottoms' values."""
    needs: bool = False
    """Result: the layer runs backward."""
    wants: list[bool] = field(default_factory=list)
    """Result, for each bottom: the layer computes its gradient."""


def find_flow(flows: Sequence[Flow], blobs: int) -> None:
    """Fill in ``needs`` and ``wants`` of every layer, in layer order."""
    _forward(flows, [False] * blobs)
    _backward(flows)


def force(flows: Sequence[Flow], allowed: Callable[[int, int], bool]) -> None:
    """``force_backward``: every layer runs backward, to every bottom that it allows."""
    for number, flow in enumerate(flows):
        flow.needs = True
        flow.wants = [want or allowed(number, j) for j, want in enumerate(flow.wants)]


def _forward(flows: Sequence[Flow], blob_needs: list[bool]) -> None:
    for flow in flows:
        reached = [blob_needs[blob] and not flow.is_constant for blob in flow.bottoms]
        flow.wants = list(flow.propagate_down) or reached
        flow.needs = flow.param_needs or any(reached)
        if flow.needs:
            for blob in flow.tops:
                blob_needs[blob] = True


def _backward(flows: Sequence[Flow]) -> None:
    under_loss: set[int] = set()
    cut_off: set[int] = set()
    for flow in reversed(flows):
        leads_to_loss, is_cut = _look_at_tops(flow, under_loss, cut_off)
        if (flow.needs and is_cut) or not leads_to_loss:
            flow.wants = [False] * len(flow.wants)
        flow.needs = flow.needs and leads_to_loss and not is_cut
        if leads_to_loss:
            under_loss.update(flow.bottoms)
        cut_off.update(
            blob for blob, want in zip(flow.bottoms, flow.wants, strict=True) if not want
        )


def _look_at_tops(flow: Flow, under_loss: set[int], cut_off: set[int]) -> tuple[bool, bool]:
    leads_to_loss = flow.is_loss or any(blob in under_loss for blob in flow.tops)
    return leads_to_loss, all(blob in cut_off for blob in flow.tops)


class InPlaceWarning(UserWarning):
    """A layer reads values that another one has overwritten."""


AUTOMATIC = "(automatic)"
"""The name of a top that its layer makes although the description leaves it out."""


def build(
    net: caffe_pb2.NetParameter,
    phase: int = TRAIN,
    level: int = 0,
    stages: Sequence[str] = (),
    unknown: str = "refuse",
) -> Graph:
    """Return the graph of a net without a solver; ``unknown="skip"`` leaves out unknown layers."""
    return build_in_state(net, net_state(net, phase, level, stages), unknown)


def build_in_state(
    net: caffe_pb2.NetParameter, state: caffe_pb2.NetState | None = None, unknown: str = "refuse"
) -> Graph:
    """Return the graph of a net in exactly this state, or its own."""
    check_policy(unknown)
    if needs_upgrade(net):
        net = upgrade_net(net)
    state = net.state if state is None else state
    filtered = filter_net(net, state)
    left_out: tuple[LeftOut, ...] = ()
    if unknown == "skip":
        filtered, left_out = leave_out_unknown(filtered)
    align_crops(filtered)
    parameter = insert_splits(filtered)
    wiring = _Wiring()
    wired = [
        wiring.add(number, description, state.phase)
        for number, description in enumerate(parameter.layer)
    ]
    _check_views(wired)
    return Graph(
        name=parameter.name,
        phase=state.phase,
        nodes=_with_gradients(wired, parameter, len(wiring.names)),
        blob_names=tuple(wiring.names),
        blob_shapes=tuple(wiring.shapes),
        inputs=tuple(top for node in wired if node.layer.is_input for top in node.tops),
        outputs=tuple(sorted(wiring.unread, key=str.encode)),
        params=wiring.params.learnables(),
        parameter=parameter,
        left_out=left_out,
    )


class _Wiring:
    """Connects layers one after the other, and finds their shapes; gradients come later."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.shapes: list[Shape] = []
        self.unread: set[str] = set()
        self.params = Params()
        self._ids: dict[str, int] = {}

    def add(
        self, number: int, description: caffe_pb2.LayerParameter, phase: caffe_pb2.Phase
    ) -> Node:
        """Caffe: net.cpp, AppendBottom, AppendTop and AppendParam."""
        if not description.HasField("phase"):
            description.phase = phase
        _check_propagate_down(description)
        layer = make(description, description.phase)
        bottoms = tuple(description.bottom)
        bottom_ids = tuple(self._ids[blob] for blob in bottoms)
        self.unread.difference_update(bottoms)
        shapes = [self.shapes[blob] for blob in bottom_ids]
        _say_which(layer, shapes)
        plan = layer.plan(shapes)
        tops = tuple(description.top)
        top_ids = tuple(self._top(layer, j, top, plan) for j, top in enumerate(tops))
        self.unread.update(tops)
        if layer.is_loss:
            for j in range(len(tops), layer.tops.least):
                tops += (AUTOMATIC,)
                top_ids += (self._new_blob(AUTOMATIC, plan.tops[j]),)
        return Node(
            name=layer.name,
            type=layer.type,
            layer=layer,
            plan=plan,
            bottoms=bottoms,
            tops=tops,
            bottom_ids=bottom_ids,
            top_ids=top_ids,
            loss_weights=_loss_weights(layer, len(tops)),
            needs_backward=False,
            propagate_down=(),
            params=self.params.add(number, layer, plan.params),
        )

    def _top(self, layer: Layer, j: int, name: str, plan: Plan) -> int:
        bottoms = layer.parameter.bottom
        if j < len(bottoms) and bottoms[j] == name:
            return self._in_place(layer, name)
        if name in self._ids:
            raise LayerError(layer.name, f"top '{name}' is already produced by another layer")
        blob = self._ids[name] = self._new_blob(name, plan.tops[j])
        return blob

    def _in_place(self, layer: Layer, name: str) -> int:
        if not layer.works_in_place:
            layer.fail(f"cannot work in place: its top '{name}' must not be its bottom")
        return self._ids[name]

    def _new_blob(self, name: str, shape: Shape) -> int:
        self.names.append(name)
        self.shapes.append(shape)
        return len(self.names) - 1


def _say_which(layer: Layer, bottoms: Sequence[Shape]) -> None:
    """Refuse to train, and warn otherwise, where forks mean different things by a layer."""
    if not (warning := layer.ambiguous(bottoms)):
        return
    if layer.phase == TRAIN:
        layer.fail(
            f"forks mean different things by it, and train differently: {warning} to test only"
        )
    message = f"layer '{clean(layer.name)}' ({layer.type}): {warning}"
    warn(message, ForkWarning)


def _check_views(nodes: Sequence[Node]) -> None:
    """Refuse to train, or warn, where a layer in place changes a view that others read."""
    memory: dict[int, int] = {}
    sources: dict[int, frozenset[int]] = {}
    writers: dict[int, frozenset[int]] = {}
    for number, node in enumerate(nodes):
        for blob in node.bottom_ids if node.tops else ():
            place = memory[blob]
            if other := writers.get(place, frozenset()) - sources[blob]:
                writer = nodes[min(other)]
                _say(
                    node.layer,
                    f"reads values that layer '{clean(writer.name)}' has overwritten, which works "
                    f"in place on a view of the same blob, '{clean(writer.tops[0])}': give that "
                    "layer a top of its own",
                )
        for top in node.top_ids:
            if top in node.bottom_ids:
                writers[memory[top]] = writers.get(memory[top], frozenset()) | {number}
                sources[top] |= {number}
            elif node.layer.is_view and node.bottom_ids:
                memory[top], sources[top] = memory[node.bottom_ids[0]], sources[node.bottom_ids[0]]
            else:
                memory[top], sources[top] = top, frozenset()


def _say(layer: Layer, what: str) -> None:
    if layer.phase == TRAIN:
        layer.fail(what)
    message = f"layer '{clean(layer.name)}' ({layer.type}) {what}"
    warn(message, InPlaceWarning)


def _check_propagate_down(description: caffe_pb2.LayerParameter) -> None:
    flags, bottoms = len(description.propagate_down), len(description.bottom)
    if flags not in (0, bottoms):
        raise LayerError(
            description.name,
            f"propagate_down is given {flags} time(s) for {bottoms} bottom(s); "
            "give it once for each bottom or not at all",
        )


def _loss_weights(layer: Layer, tops: int) -> tuple[float, ...]:
    """Caffe: layer.hpp, SetLossWeights, and loss_layer.cpp, LayerSetUp."""
    weights = tuple(layer.parameter.loss_weight)
    if weights and len(weights) != tops:
        layer.fail(f"loss_weight is given {len(weights)} time(s) for {tops} top(s)")
    if weights or not layer.is_loss:
        return weights or (0.0,) * tops
    return (1.0, *(0.0,) * (tops - 1))


def _with_gradients(
    nodes: Sequence[Node], parameter: caffe_pb2.NetParameter, blobs: int
) -> tuple[Node, ...]:
    """Return the nodes, with which of them run backward decided."""
    flows = [
        Flow(
            bottoms=node.bottom_ids,
            tops=node.top_ids,
            is_loss=any(node.loss_weights),
            param_needs=_param_needs(node),
            propagate_down=tuple(node.layer.parameter.propagate_down),
            is_constant=node.layer.is_constant,
        )
        for node in nodes
    ]
    find_flow(flows, blobs)
    forced = parameter.force_backward
    if forced:
        force(flows, lambda number, bottom: nodes[number].layer.force_backward(bottom))
    return tuple(
        replace(
            node,
            needs_backward=flow.needs,
            propagate_down=tuple(flow.wants),
            params=tuple(map(ParamRef.forced, node.params)) if forced else node.params,
        )
        for node, flow in zip(nodes, flows, strict=True)
    )


def _param_needs(node: Node) -> bool:
    """Return whether parameters make a layer run backward; in Caffe BatchNorm's do."""
    frozen_by_default = node.layer.freezes_by_default and len(node.layer.parameter.param) < len(
        node.params
    )
    return frozen_by_default or any(ref.needs_gradient for ref in node.params)
