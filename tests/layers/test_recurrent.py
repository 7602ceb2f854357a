"""RNN, LSTM, LSTMUnit."""

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import layer, plan, shapes_of_params

FIVE = "recurrent_param { num_output: 5 weight_filler { type: 'xavier' } bias_filler { value: 1 } }"
EXPOSED = FIVE.replace("num_output", "expose_hidden: true num_output")
SEQUENCE = ((4, 2, 3, 2), (4, 2))


def test_lstm():
    found = plan("LSTM", FIVE, *SEQUENCE)
    assert found.tops == ((4, 2, 5),)
    assert shapes_of_params(found) == [(20, 6), (20,), (20, 5)]
    assert [param.filler.type for param in found.params] == ["xavier", "constant", "xavier"]
    assert found.values == {
        "steps": 4,
        "streams": 2,
        "inputs": 6,
        "num_output": 5,
        "static_inputs": 0,
        "expose_hidden": False,
        "states": 2,
    }


def test_rnn_with_everything():
    found = plan("RNN", EXPOSED, *SEQUENCE, (2, 7), (1, 2, 5), tops=2)
    assert found.tops == ((4, 2, 5), (1, 2, 5))
    assert shapes_of_params(found) == [(5, 6), (5,), (5, 7), (5, 5), (5, 5), (5,)]
    assert found.values["static_inputs"] == 7


def test_lstm_exposed():
    state = (1, 2, 5)
    assert plan("LSTM", EXPOSED, *SEQUENCE, state, state, tops=3).tops == ((4, 2, 5), state, state)
    made = layer("LSTM", EXPOSED, bottoms=5, tops=3)
    assert [made.force_backward(i) for i in range(5)] == [True, False, True, False, False]
    made = layer("LSTM", EXPOSED, bottoms=4, tops=3)
    assert [made.force_backward(i) for i in range(4)] == [True, False, False, False]


@pytest.mark.parametrize(
    ("options", "shapes", "tops", "says"),
    [
        ("", SEQUENCE, 1, "num_output 0 must be positive"),
        (FIVE, [(4,), (4, 2)], 1, "time x streams"),
        (FIVE, [(4, 2, 3), (3, 2)], 1, "must be time x streams, 4 x 2; they are 3 x 2"),
        (FIVE, [(4, 2, 3), (4, 2, 1)], 1, "they are 4 x 2 x 1"),
        (FIVE, [*SEQUENCE, (3, 7)], 1, "static input must have 2 streams"),
        (FIVE, [*SEQUENCE, (2, 0)], 1, "static input is empty"),
        (FIVE, [*SEQUENCE, (2, 7), (2, 7)], 1, "takes 2 to 3 bottoms; it has 4"),
        (FIVE, SEQUENCE, 2, "makes 1 tops; it has 2"),
        (EXPOSED, SEQUENCE, 3, r"takes 4 to 5 bottoms \(expose_hidden adds 2\); it has 2"),
        (EXPOSED, [*SEQUENCE, (1, 2, 5), (1, 2, 5)], 1, "makes 3 tops"),
        (EXPOSED, [*SEQUENCE, (1, 2, 5), (2, 5)], 3, "hidden state must be 1 x 2 x 5; it is 2 x 5"),
        (FIVE.replace("xavier", "glorot"), SEQUENCE, 1, "unknown filler 'glorot'"),
    ],
)
def test_refused(options, shapes, tops, says):
    with pytest.raises(LayerError, match=says):
        plan("LSTM", options, *shapes, tops=tops)


def test_streams_may_change_but_not_steps_of_caffes_own():
    lstm, gru = (layer(kind, FIVE, bottoms=2) for kind in ("LSTM", "GRU"))
    for one in (lstm, gru):
        for streams in (2, 7):
            assert one.plan([(4, streams, 3), (4, streams)]).tops == ((4, streams, 5),)
    assert gru.plan([(3, 2, 3), (3, 2)]).tops == ((3, 2, 5),)
    with pytest.raises(LayerError, match="time steps cannot change from 4 to 3"):
        lstm.plan([(3, 2, 3), (3, 2)])


def test_lstm_unit():
    found = plan("LSTMUnit", "", (1, 3, 4), (1, 3, 16), (1, 3), tops=2)
    assert found.tops == ((1, 3, 4), (1, 3, 4))
    assert found.values == {"streams": 3, "units": 4}
    for shapes, says in (
        (((3, 4), (1, 3, 16), (1, 3)), "the cell must be"),
        (((2, 3, 4), (1, 3, 16), (1, 3)), "the cell must be"),
        (((1, 3, 4), (1, 3, 12), (1, 3)), "gates must be 1 x 3 x 16; they are 1 x 3 x 12"),
        (((1, 3, 4), (1, 3, 16), (1, 2)), "indicators must be 1 x 3; they are 1 x 2"),
    ):
        with pytest.raises(LayerError, match=says):
            plan("LSTMUnit", "", *shapes, tops=2)
