"""Draws attentions in the order in which exporters leave them."""

from tests.fuzz.kernels.case import Case
from tests.fuzz.kernels.sizes import Draw, check_work, some, text, twice


def attention(rng: Draw) -> Case:
    """softmax(Q K^T) V with heads, perhaps with scores that are added."""
    batch, heads = some(rng, 1, 6), rng.choice((1, 2, 3, 4, 6, 8, 12))
    rows, keys = some(rng, 1, 200), some(rng, 1, 200)
    keys = rows if rng.random() < 0.5 else keys
    depth, width = twice(rng, lambda: rng.choice((8, 16, 32, 64, 64, 80, some(rng, 1, 100))))
    scores = batch * heads * rows * keys
    check_work(scores * (depth + width), scores, 0)
    turned = rng.random() < 0.5
    shapes: dict[str, tuple[int, ...]] = {"q": (batch, rows, heads * depth)}
    shapes |= {"k": (batch, keys, heads * depth), "v": (batch, keys, heads * width)}
    orders = {"q": (0, 2, 1, 3), "k": (0, 2, 1, 3) if turned else (0, 2, 3, 1), "v": (0, 2, 1, 3)}
    made = ""
    for name, order in orders.items():
        before, tokens, values = shapes[name]
        sizes = " ".join(f"dim: {one}" for one in (before, tokens, heads, values // heads))
        made += text(
            name + "r", "Reshape", name, name + "r", f"reshape_param {{ shape {{ {sizes} }} }}"
        )
        made += permuted(name + "r", name + "p", order)
    made += text("qs", "Power", "qp", "qs", f"power_param {{ scale: {depth**-0.5:.4f} }}")
    turn = f"matmul_param {{ transpose_b: {str(turned).lower()} }}"
    made += text("s", "MatMul", "qs kp", "s", turn)
    last = "s"
    if rng.random() < 0.5:
        shapes["m"], last = (batch, 1, rows, keys), "a"
        made += text("t", "Tile", "m", "t", f"tile_param {{ axis: 1 tiles: {heads} }}")
        made += text("a", "Eltwise", rng.choice(("s t", "t s")), "a")
    made += text("p", "Softmax", last, "p", "softmax_param { axis: -1 }")
    made += text("o", "MatMul", "p vp", "o")
    if rng.random() < 0.8:
        made += permuted("o", "y", (0, 2, 1, 3))
    return Case("attention", made, shapes, phase="TEST", backward=False)


def permuted(bottom: str, top: str, order: tuple[int, ...]) -> str:
    axes = " ".join(f"order: {one}" for one in order)
    return text(top, "Permute", bottom, top, f"permute_param {{ {axes} }}")
