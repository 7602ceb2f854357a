import pytest

from sparknet.errors import LayerError
from tests.graph.nets import dense, graph, layer, source

X, Z = source("x", 2, 3), source("z", 2, 3)


def test_missing_entries_mean_rate_one():
    net = graph(X, dense("f", "x", "y", 4, "param { lr_mult: 3 decay_mult: 0 }"))
    assert [(p.shape, p.lr_mult, p.decay_mult) for p in net.params] == [
        ((4, 3), 3, 0),
        ((4,), 1, 1),
    ]
    assert [ref.name for ref in net.node("f").params] == ["0", "1"]
    assert net.param_count == 16


def test_a_named_parameter_belongs_to_its_first_user():
    named = 'param { name: "w" } param { name: "b" }'
    net = graph(X, Z, dense("f", "x", "y", 2, named), dense("g", "z", "u", 2, named))
    assert [(p.node, p.index, p.name, p.shape) for p in net.params] == [
        (2, 0, "w", (2, 3)),
        (2, 1, "b", (2,)),
    ]
    assert [(r.learnable, r.node, r.index, r.owned) for r in net.node("g").params] == [
        (0, 2, 0, False),
        (1, 2, 1, False),
    ]
    assert (net.param_count, net.node("g").param_count) == (8, 8)
    assert [ref.name for ref in net.node("g").params] == ["w", "b"]


def test_one_layer_may_share_with_itself():
    both = 'param { name: "w" } param { name: "w" share_mode: PERMISSIVE }'
    net = graph(source("x", 2, 1), dense("f", "x", "y", 2, both))
    assert len(net.params) == 1
    assert [ref.owned for ref in net.node("f").params] == [True, False]


def test_a_rate_may_come_from_any_sharer():
    net = graph(
        X,
        Z,
        dense("f", "x", "y", 2, 'param { name: "w" decay_mult: 5 }'),
        dense("g", "z", "u", 2, 'param { name: "w" lr_mult: 7 }'),
    )
    assert (net.params[0].lr_mult, net.params[0].decay_mult) == (7, 5)


def test_strict_sharing_compares_shapes_and_permissive_counts():
    wide, tall = source("x", 2, 6), source("z", 2, 3)
    first = dense("f", "x", "y", 1, 'param { name: "w" }')
    with pytest.raises(LayerError, match=r"layer 'g': .*'w' of layer 'f'.*2 x 3 here, 1 x 6 there"):
        graph(wide, tall, first, dense("g", "z", "u", 2, 'param { name: "w" }'))
    loose = 'param { name: "w" share_mode: PERMISSIVE }'
    net = graph(wide, tall, first, dense("g", "z", "u", 2, loose))
    assert net.params[0].shape == (1, 6)
    assert net.node("g").params[0].shape == (2, 3)
    with pytest.raises(LayerError, match="number of values"):
        graph(wide, tall, first, dense("g", "z", "u", 3, loose))


def test_batch_norm_statistics_do_not_learn():
    net = graph(X, layer("BatchNorm", "b", "x", "y"))
    assert [p.lr_mult for p in net.params] == [0, 0, 0]
    with pytest.raises(LayerError, match="layer 'b'"):
        graph(X, layer("BatchNorm", "b", "x", "y", "param { lr_mult: 1 }"))
