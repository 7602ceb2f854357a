"""Random nets against slow, obvious answers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.graph import Graph, build
from sparknet.layers import LAYERS
from sparknet.layers.layer import TRAIN
from sparknet.proto import caffe_pb2


@st.composite
def nets(draw: st.DrawFn) -> caffe_pb2.NetParameter:
    """Sums, activations in place or not, dense layers, losses."""
    net = caffe_pb2.NetParameter(force_backward=draw(st.booleans()))
    blobs = []
    for number in range(draw(st.integers(1, 2))):
        blobs.append(f"in{number}")
        source = net.layer.add(name=f"i{number}", type="Input", top=[blobs[-1]])
        source.input_param.shape.add(dim=[2, 2])
    for number in range(draw(st.integers(1, 8))):
        _add_layer(draw, net, blobs, number)
    return net


def _add_layer(draw: st.DrawFn, net: caffe_pb2.NetParameter, blobs: list[str], number: int) -> None:
    kind = draw(st.sampled_from(["InnerProduct", "ReLU", "in place", "Eltwise", "EuclideanLoss"]))
    bottoms = [draw(st.sampled_from(blobs))]
    if kind in ("Eltwise", "EuclideanLoss"):
        bottoms.append(draw(st.sampled_from(blobs)))
    if kind == "in place" and _readers(net, bottoms[0]):
        kind = "ReLU"
    layer = net.layer.add(name=f"l{number}", bottom=bottoms, top=[f"b{number}"])
    layer.type = "ReLU" if kind == "in place" else kind
    if kind == "in place":
        layer.top[0] = bottoms[0]
    elif kind != "EuclideanLoss":
        blobs.append(f"b{number}")
    if kind == "InnerProduct":
        layer.inner_product_param.num_output = 2
        for _ in range(draw(st.integers(0, 2))):
            layer.param.add(lr_mult=draw(st.sampled_from([0, 1])))
    if draw(st.integers(0, 4)) == 0:
        layer.propagate_down.extend(draw(st.booleans()) for _ in bottoms)
    if kind != "in place" and draw(st.integers(0, 4)) == 0:
        layer.loss_weight.append(draw(st.sampled_from([0, 2])))


def _readers(net: caffe_pb2.NetParameter, blob: str) -> bool:
    """Whether a blob is read or a loss already, so that no layer may change it in place."""
    return any(
        (blob in layer.bottom and blob not in layer.top)
        or (blob in layer.top and any(layer.loss_weight))
        for layer in net.layer
    )


def uses(net: caffe_pb2.NetParameter, number: int) -> int:
    """How often the top of a layer is used before another layer takes it over in place."""
    top = net.layer[number].top[0]
    found = int(any(net.layer[number].loss_weight))
    for layer in list(net.layer)[number + 1 :]:
        found += list(layer.bottom).count(top)
        if top in layer.top:
            break
    return found


@settings(max_examples=150)
@given(nets())
def test_splits(net):
    graph = build(net)
    expected = []
    for number, layer in enumerate(net.layer):
        expected.append(layer.name)
        if uses(net, number) > 1:
            expected.append(f"{layer.top[0]}_{layer.name}_0_split")
            assert len(graph.node(expected[-1]).tops) == uses(net, number)
    assert graph.layers == expected
    read = [blob for node in graph.nodes if not node.in_place for blob in node.bottom_ids]
    assert len(read) == len(set(read)), "no blob has two readers"


@settings(max_examples=150)
@given(nets())
def test_blobs_and_outputs(net):
    graph = build(net)
    read = {blob for node in graph.nodes if not node.in_place for blob in node.bottoms}
    assert graph.outputs == tuple(sorted(set(graph.blob_names) - read))
    made = [top for node in graph.nodes if not node.in_place for top in node.tops]
    assert list(graph.blob_names) == made


def needed_by_definition(graph: Graph) -> list[bool]:
    """A layer runs backward if something that learns feeds it (or is in it), and a loss can
    be reached from it by bottoms that pass a gradient on."""
    learns: list[bool] = []
    for number, node in enumerate(graph.nodes):
        own = any(ref.spec.lr_mult for ref in node.params)
        learns.append(own or any(learns[maker] for maker in makers(graph, number)))
    return [learns[number] and open_to_loss(graph, number, learns) for number in range(len(learns))]


def makers(graph: Graph, number: int) -> list[int]:
    """For each bottom, the last layer before that made it."""
    return [
        max(i for i in range(number) if blob in graph.nodes[i].top_ids)
        for blob in graph.nodes[number].bottom_ids
    ]


def open_to_loss(graph: Graph, number: int, learns: list[bool]) -> bool:
    """Whether a gradient comes down to a layer: it is a loss or a reader hands one down."""
    node = graph.nodes[number]
    if any(node.loss_weights):
        return True
    for reader, later in enumerate(graph.nodes):
        for place, maker in enumerate(makers(graph, reader) if later.bottoms else []):
            if maker != number:
                continue
            asked = later.layer.parameter.propagate_down
            passes = asked[place] if asked else learns[number]
            if passes and open_to_loss(graph, reader, learns):
                return True
    return False


@settings(max_examples=200)
@given(nets())
def test_what_runs_backward(net):
    net.force_backward = False
    graph = build(net)
    assert [node.needs_backward for node in graph.nodes] == needed_by_definition(graph)


@settings(max_examples=50)
@given(nets())
def test_forcing_only_adds(net):
    net.force_backward = False
    free = build(net)
    net.force_backward = True
    forced = build(net)
    for one, other in zip(free.nodes, forced.nodes, strict=True):
        assert other.needs_backward
        for bottom, (expected, now) in enumerate(
            zip(one.propagate_down, other.propagate_down, strict=True)
        ):
            allowed = LAYERS[one.type](one.layer.parameter, TRAIN).force_backward(bottom)
            assert now == (expected or allowed)
