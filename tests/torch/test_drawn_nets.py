"""Drawn nets give the same values, gradients and refusals in both engines: make fuzz-engines."""

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from tests.fuzz.engines import difference, net_of

EACH = 125


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(10_000, 10_000 + 12 * EACH, EACH))
def test_drawn_nets_are_the_same_in_both_engines(first):
    answers = {number: difference(net_of(number)) for number in range(first, first + EACH)}
    assert {number: why for number, why in answers.items() if why} == {}
    assert sum(why == "" for why in answers.values()) > EACH / 4
