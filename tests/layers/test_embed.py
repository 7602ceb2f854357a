from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_shapes() -> None:
    found = plan("Embed", "embed_param { num_output: 3 input_dim: 7 }", (2, 5))
    assert found.tops == ((2, 5, 3),)
    assert shapes_of_params(found) == [(7, 3), (3,)]
    bare = plan("Embed", "embed_param { num_output: 3 input_dim: 7 bias_term: false }", (2,))
    assert shapes_of_params(bare) == [(7, 3)]


@pytest.mark.parametrize(
    ("options", "shapes", "says"),
    [
        ("embed_param { num_output: 3 }", [(2,)], "input_dim must be positive"),
        ("embed_param { input_dim: 3 }", [(2,)], "num_output must be positive"),
        (
            "embed_param { num_output: 3 input_dim: 7 }",
            [
                (
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                )
            ],
            "33 axes; 32 is the most",
        ),
    ],
)
def test_refused(options: str, shapes: list[tuple[int, ...]], says: str) -> None:
    with pytest.raises(LayerError, match=says) as caught:
        plan("Embed", options, *shapes)
    assert caught.value.layer == "l"
