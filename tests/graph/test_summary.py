from sparknet.graph import summary
from tests.graph.nets import dense, graph, layer, source

NET = graph(
    source("x", 64, 1, 28, 28),
    dense("ip1", "x", "h", 500),
    layer("ReLU", "relu1", "h", "h"),
    dense("ip2", "h", "y", 10),
    dense("ip3", "h", "z", 10),
)


def test_layers_types_shapes_and_parameters():
    assert summary(NET).splitlines() == [
        "Layer  Type          Output shape      Parameters",
        "-------------------------------------------------",
        "in_x   Input         64 x 1 x 28 x 28           0",
        "ip1    InnerProduct  64 x 500             392,500",
        "relu1  ReLU          64 x 500                   0",
        "ip2    InnerProduct  64 x 10                5,010",
        "ip3    InnerProduct  64 x 10                5,010",
        "-------------------------------------------------",
        "402,520 parameters (1.5 MiB), 576.0 KiB of blobs in 6 layers",
    ]


def test_splits_on_request():
    assert "h_relu1_0_split" in summary(NET, splits=True)
    assert "split" not in summary(NET)


def test_shared_parameters_are_marked_and_counted_once():
    weight = 'param { name: "w" }'
    net = graph(source("x", 2, 3), dense("f", "x", "y", 3, weight), dense("g", "y", "z", 3, weight))
    rows = summary(net).splitlines()
    assert rows[3].endswith(" 12")
    assert rows[4].endswith(" 3 + shared")
    assert rows[-1].startswith("15 parameters (60 bytes)")


def test_names_cannot_break_the_table():
    net = graph(layer("Input", "a\\nb\\033[31m" + "c" * 500, "", "x"))
    table = summary(net)
    assert len(table.splitlines()) == 5
    assert "\033" not in table
    assert max(map(len, table.splitlines())) < 120


def test_an_empty_net():
    assert (
        summary(graph()).splitlines()[-1] == "0 parameters (0 bytes), 0 bytes of blobs in 0 layers"
    )
