"""How many records go through a net at a time."""

import numpy as np
import pytest

from sparknet.net import Net
from sparknet.predict.request import ENOUGH, MOST, batch_for

CONV = """layer { name: "c" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }"""


def layer(kind: str, more: str = "", bottom: str = "c", top: str = "y") -> str:
    return f"""layer {{ name: "{top}" type: "{kind}" bottom: "{bottom}" top: "{top}" {more} }}"""


def net(*layers: str, batch: int = 1, size: int = 8) -> Net:
    dims = "".join(f"dim: {one} " for one in (batch, 1, size, size))
    given = f"""layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ {dims} }} }} }}"""
    return Net("\n".join((given, CONV, *layers)), seed=1)


IP = layer(
    "InnerProduct", """inner_product_param { num_output: 3 weight_filler { type: "xavier" } }"""
)
STATS = "batch_norm_param { use_global_stats: %s }"


@pytest.mark.parametrize(
    "more",
    [
        IP,
        layer("Pooling", "pooling_param { global_pooling: true }"),
        layer("Softmax"),
        layer("BatchNorm"),
        layer("BatchNorm", STATS % "true"),
        layer("Reshape", "reshape_param { shape { dim: 0 dim: -1 } }"),
        layer("Concat", "", "c") + layer("MVN", "", "y", "z"),
        layer("Permute", "permute_param { order: 1 order: 0 order: 2 order: 3 }"),
    ],
)
def test_more_where_records_are_for_themselves(more):
    """Records in one batch become what they become one by one."""
    made = net(more)
    (name,) = made.tested.net.outputs
    assert batch_for(made.tested, [name]) == MOST
    records = np.random.default_rng(0).normal(size=(5, 1, 8, 8)).astype(np.float32)
    together = made.forward({"x": records})[name]
    alone = [made.forward({"x": record[None]})[name] for record in records]
    axis = 1 if "Permute" in more else 0
    np.testing.assert_allclose(together, np.concatenate(alone, axis), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "more",
    [
        layer("BatchNorm", STATS % "false"),
        layer("Softmax", "softmax_param { axis: 0 }"),
        layer("Reshape", "reshape_param { shape { dim: 1 dim: -1 } }"),
        layer("Reshape", "reshape_param { shape { dim: 1 dim: 4 dim: 36 } }"),
        layer("Flatten", "flatten_param { axis: 0 end_axis: 1 }"),
        """layer { name: "y" type: "Concat" bottom: "c" bottom: "c" top: "y"
             concat_param { axis: 0 } }""",
        layer("Reduction"),
        layer("BatchNorm", STATS % "false") + layer("ReLU", "", "y", "z"),
    ],
)
def test_a_net_that_mixes_records_keeps_its_batch(more):
    made = net(more)
    assert batch_for(made.tested, made.tested.net.outputs) == 1
    assert batch_for(made.tested, ["c"]) == MOST  # does not depend on the layer


@pytest.mark.parametrize(
    ("size", "described", "expected"),
    [(512, 1, 16), (3000, 1, 1), (512, 20, 20), (8, 2048, 2048), (96, 1, ENOUGH), (50, 1, 128)],
)
def test_large_records_come_in_small_batches(size, described, expected):
    """The largest blob is 64 MiB, or 8 MiB for more than 64 records."""
    made = net(batch=described, size=size).tested
    assert batch_for(made, ["c"]) == expected
