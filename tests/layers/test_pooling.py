"""Pooling and SPP: what a plan says beyond shapes."""

from tests.layers.nets import layer, plan, shapes_of_params


def pool(options: str) -> str:
    return f"pooling_param {{ {options} }}"


def test_values():
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


def test_only_stochastic_pooling_draws():
    made = {
        method: layer("Pooling", pool(f"pool: {method} kernel_size: 2"))
        for method in ("MAX", "AVE", "STOCHASTIC")
    }
    assert [method for method, one in made.items() if one.draws] == ["STOCHASTIC"]


def test_one_level_keeps_the_axes():
    found = plan("SPP", "spp_param { pyramid_height: 1 }", (2, 3, 9, 8))
    assert found.tops == ((2, 3, 1, 1),)
    assert found.values["levels"][0]["kernel"] == (9, 8)


def test_three_levels_are_one_vector():
    found = plan("SPP", "spp_param { pyramid_height: 3 pool: AVE }", (2, 3, 9, 8))
    # 1 x 1, 2 x 2, and 4 x 4 bins
    assert found.tops == ((2, 3 * 21),)
    assert shapes_of_params(found) == []
    assert [level["kernel"] for level in found.values["levels"]] == [(9, 8), (5, 4), (3, 2)]
    assert [level["pad"] for level in found.values["levels"]] == [(0, 0), (1, 0), (2, 0)]
    assert found.values["method"] == "ave"
