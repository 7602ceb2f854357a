import pytest

from benchmarks.memory import MODES, in_child, row


@pytest.mark.parametrize("mode", MODES)
def test_a_small_net_stays_near_its_floor(mode):
    found = in_child("lenet", mode)
    assert found is not None
    assert found["parameters"] == 4 * 431_080
    # One blob may lie in rows and in a layout at once; not all of them.
    engine = (
        found["rows"]
        + found["layouts"]
        + found["parameters"] * (3 if mode.startswith("train") else 1)
    )
    assert 0 < engine < 1.6 * found["floor"]


def test_a_net_that_does_not_run_has_its_row():
    assert row("net x 1, test", None) == f"{'net x 1, test':<24}  does not run"
    figures = dict.fromkeys(("parameters", "rows", "layouts", "scratch", "pages"), 0)
    assert row("n", {**figures, "floor": 2_000_000, "process": 3_000_000}).endswith("3.0     1.50")
