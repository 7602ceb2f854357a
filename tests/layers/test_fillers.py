import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from sparknet.errors import LayerError
from sparknet.layers import LAYERS
from sparknet.layers.fillers import FILLERS, check_filler, constant, fill
from sparknet.proto import caffe_pb2
from tests.goldens import GOLDENS, agrees, cases, index
from tests.layers.nets import plan, read_net

CASES = index("data/fillers")
XAVIER = [("xavier", 0), ("constant", 0)]
LSTM = "num_output: 5 weight_filler { type: 'xavier' } bias_filler { value: 1 }"


def filler(text):
    return text_format.Parse(text, caffe_pb2.FillerParameter())


def _golden(case):
    layer = read_net(GOLDENS / "data/fillers" / f"{case['name']}.prototxt").layer[0]
    found = layer.dummy_data_param.data_filler[0]
    shape = tuple(case["shape"])
    check_filler("l", found, shape)
    values = fill(found, shape, np.random.default_rng(7))
    assert values.dtype == np.float32
    assert values.shape == shape
    return values


@cases("data/fillers", [c for c in CASES if c["exact"]])
def test_exact_fillers_are_caffes(case):
    with np.load(GOLDENS / "data/fillers" / f"{case['name']}.npz") as arrays:
        want = arrays[arrays.files[0]]
    assert agrees(_golden(case), want, 1e-6, 1e-7, 0)


@cases("data/fillers", [c for c in CASES if not c["exact"]])
def test_random_fillers_have_caffes_statistics(case):
    values, stats = _golden(case), case["stats"]
    count, share = values.size, stats["zero_share"]
    zeros = values == 0
    assert abs(zeros.mean() - share) <= 6 * np.sqrt(share * (1 - share) / count)
    others, most = values[~zeros], count * (1 - share)
    std = stats["std_nonzero"]
    assert abs(others.mean() - stats["mean_nonzero"]) <= 6 * std / np.sqrt(most)
    assert abs(others.std() - std) <= max(0.05, 6 / np.sqrt(2 * most)) * std
    if case["bounded"]:
        margin = 0.02 * (stats["max"] - stats["min"])
        assert abs(values.min() - stats["min"]) <= margin
        assert abs(values.max() - stats["max"]) <= margin
    if case["name"] == "positive_unitball":
        assert values.min() >= 0
        assert np.abs(values.reshape(len(values), -1).sum(1) - 1).max() < 1e-4


def test_all_cases_were_run():
    assert len(CASES) in (0, 15)


@pytest.mark.parametrize(
    ("text", "shape", "says"),
    [
        ("type: 'glorot'", (2, 3), "unknown filler 'glorot'; the fillers are"),
        ("type: 'gausian'", (2, 3), "did you mean 'gaussian'"),
        ("type: 'xavier' sparse: 2", (2, 3), "'xavier' does not support sparse"),
        ("type: 'constant' sparse: 0", (2, 3), "'constant' does not support sparse"),
        ("type: 'gaussian' sparse: 3", (2, 3), "sparse from 0 to the first axis"),
        ("type: 'gaussian' sparse: -2", (2, 3), "sparse from 0 to the first axis"),
        ("type: 'gaussian' sparse: 1", (), "sparse from 0 to the first axis"),
        ("type: 'gaussian' std: 0", (2, 3), "positive std; it is 0"),
        ("type: 'gaussian' mean: nan", (2, 3), "positive std"),
        ("type: 'uniform' min: 2 max: 1", (2, 3), "min <= max; they are 2 and 1"),
        ("type: 'uniform' min: -inf max: 1", (2, 3), "min <= max; they are -inf and 1"),
        ("type: 'uniform' min: 1 max: inf", (2, 3), "min <= max; they are 1 and inf"),
        ("type: 'bilinear'", (1, 1, 4, 2), "square kernel; the shape is 1 x 1 x 4 x 2"),
        ("type: 'bilinear'", (4, 4), "needs 4 axes"),
        ("type: 'msra'", (), "at least 1 axis"),
        ("type: 'positive_unitball'", (1,) * 5, "at most 4 axes"),
    ],
)
def test_refused(text, shape, says):
    with pytest.raises(LayerError, match=says) as caught:
        check_filler("conv1", filler(text), shape)
    assert caught.value.layer == "conv1"


@given(
    st.sampled_from(sorted(set(FILLERS) - {"bilinear", "diagonal"})),
    st.lists(st.integers(0, 4), max_size=4).map(tuple),
    st.sampled_from(["FAN_IN", "FAN_OUT", "AVERAGE"]),
)
def test_every_shape_is_filled(kind, shape, norm):
    chosen = filler(f"type: '{kind}' variance_norm: {norm}")
    try:
        check_filler("l", chosen, shape)
    except LayerError:
        assert shape == ()
        return
    values = fill(chosen, shape, np.random.default_rng(1))
    assert values.shape == shape
    assert values.flags.c_contiguous
    assert np.isfinite(values).all()


def test_the_seed_decides():
    chosen = filler("type: 'gaussian' sparse: 2")
    one, two, other = (fill(chosen, (5, 9), np.random.default_rng(s)) for s in (3, 3, 4))
    assert (one == two).all()
    assert (one != other).any()


def test_constant():
    assert constant(0.25).value == 0.25
    assert fill(constant(2), (), np.random.default_rng()).tolist() == 2.0


@pytest.mark.parametrize(
    ("kind", "options", "shapes", "fillers"),
    [
        ("Bias", "", [(2, 3, 4)], [("constant", 0)]),
        ("Scale", "bias_term: true", [(2, 3, 4)], [("constant", 1), ("constant", 0)]),
        ("Scale", "filler { type: 'uniform' max: 2 }", [(2, 3)], [("uniform", 0)]),
        ("Scale", "axis: 0 bias_term: true", [(2, 3, 4), (2, 3)], [("constant", 0)]),
        ("Normalize", "", [(2, 3, 4, 5)], [("constant", 1)]),
        ("InnerProduct", "num_output: 5 weight_filler { type: 'xavier' }", [(2, 3)], XAVIER),
        ("PReLU", "", [(2, 3)], [("constant", 0.25)]),
        ("LSTM", LSTM, [(4, 2, 3), (4, 2)], [XAVIER[0], ("constant", 1), XAVIER[0]]),
    ],
)
def test_fillers_of_parameters(kind, options, shapes, fillers):
    params = plan(kind, f"{LAYERS[kind].field} {{ {options} }}", *shapes).params
    assert [(one.filler.type, one.filler.value) for one in params] == fillers
