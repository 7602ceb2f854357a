from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import layer, plan, shapes_of_params


def pool(options: str) -> str:
    return f"pooling_param {{ {options} }}"


@pytest.mark.parametrize(
    ("options", "size", "want"),
    [
        ("kernel_size: 3 stride: 2", (6, 7), (3, 3)),  # ceil(3 / 2) + 1, ceil(4 / 2) + 1
        ("kernel_size: 3 stride: 2 round_mode: FLOOR", (6, 7), (2, 3)),
        ("kernel_size: 2 stride: 2 pad: 1", (4, 5), (3, 3)),  # 4 clipped to 3 windows each
        ("kernel_size: 4 stride: 2", (3, 3), (1, 1)),  # reaches past the end
        ("kernel_h: 1 kernel_w: 3 stride_h: 1 stride_w: 2 pad_h: 0 pad_w: 1", (4, 6), (4, 4)),
        ("global_pooling: true", (5, 7), (1, 1)),
    ],
)
def test_sizes(options: str, size: tuple[int, int], want: tuple[int, int]) -> None:
    assert plan("Pooling", pool(options), (2, 3, *size)).tops == ((2, 3, *want),)


def test_values() -> None:
    found = plan("Pooling", pool("pool: AVE kernel_size: 3 stride: 2"), (1, 1, 7, 7))
    assert found.values == {
        "method": "ave",
        "kernel": (3, 3),
        "stride": (2, 2),
        "pad": (0, 0),
        "round_mode": "ceil",
        "global_pooling": False,
    }
    assert plan("Pooling", pool("global_pooling: true"), (1, 1, 5, 7)).values["kernel"] == (5, 7)


def test_mask() -> None:
    found = plan("Pooling", pool("kernel_size: 2 stride: 2"), (1, 2, 4, 4), tops=2)
    assert found.tops == ((1, 2, 2, 2),) * 2
    assert shapes_of_params(found) == []
    with pytest.raises(LayerError, match="for MAX pooling; this is AVE"):
        plan("Pooling", pool("pool: AVE kernel_size: 2"), (1, 2, 4, 4), tops=2)


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        (
            "pooling_param {  }",
            [(2, 3, 8, 9)],
            "kernel_size, or kernel_h and kernel_w, must be given",
        ),
        ("pooling_param { kernel_h: 2 }", [(2, 3, 8, 9)], "not a mixture"),
        (
            "pooling_param { kernel_size: 2 kernel_h: 2 kernel_w: 2 }",
            [(2, 3, 8, 9)],
            "not a mixture",
        ),
        (
            "pooling_param { kernel_size: 2 pad: 1 pad_h: 1 pad_w: 1 }",
            [(2, 3, 8, 9)],
            "give pad, or pad_h and pad_w",
        ),
        (
            "pooling_param { kernel_size: 2 stride_w: 1 }",
            [(2, 3, 8, 9)],
            "give stride, or stride_h and stride_w",
        ),
        ("pooling_param { kernel_size: 2 stride: 0 }", [(2, 3, 8, 9)], "stride must be at least 1"),
        (
            "pooling_param { kernel_size: 2 pad: 2 }",
            [(2, 3, 8, 9)],
            "pad 2 x 2 must be smaller than the kernel 2 x 2",
        ),
        (
            "pooling_param { pool: STOCHASTIC kernel_size: 2 pad: 1 }",
            [(2, 3, 8, 9)],
            "STOCHASTIC pooling takes no padding",
        ),
        (
            "pooling_param { global_pooling: true kernel_size: 2 }",
            [(2, 3, 8, 9)],
            "give no kernel size",
        ),
        (
            "pooling_param { global_pooling: true stride: 2 }",
            [(2, 3, 8, 9)],
            "pad 0 and stride 1 only",
        ),
        ("pooling_param { global_pooling: true }", [(1, 2, 0, 3)], "kernel must be at least 1"),
        (
            "pooling_param { kernel_size: 2 }",
            [(2, 3, 8)],
            "takes 4 axes .*; the input is 2 x 3 x 8",
        ),
        ("pooling_param { kernel_size: 12 }", [(2, 3, 8, 9)], "does not fit"),
        (
            "pooling_param { kernel_size: 4294967295 pad: 4294967294 }",
            [(2, 3, 8, 9)],
            "below 2\\^31",
        ),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Pooling", options, *shapes)
    assert caught.value.layer == "l"


def test_only_stochastic_pooling_draws() -> None:
    made = {
        method: layer("Pooling", pool(f"pool: {method} kernel_size: 2"))
        for method in ("MAX", "AVE", "STOCHASTIC")
    }
    assert [method for method, one in made.items() if one.draws] == ["STOCHASTIC"]
