"""Encoders of the package transformers, with random weights, by both of PyTorch's exporters.

Neither package is installed in CI; `make test-peers` runs these.
"""

import warnings

import numpy as np
import pytest

import sparknet
from tests.onnx.graphs import TOLERANCE, run

HIDDEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES = {**HIDDEN, "intermediate_size": 48, "vocab_size": 99, "max_position_embeddings": 40}
DISTIL = {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
GPT = {"vocab_size": 99, "n_positions": 40, "n_embd": 32, "n_layer": 2, "n_head": 4}
MODELS = {
    "Bert": SIZES,
    "DistilBert": {**DISTIL, "max_position_embeddings": 40},
    "Roberta": {**SIZES, "max_position_embeddings": 42, "type_vocab_size": 1},
    "MPNet": {**SIZES, "max_position_embeddings": 42},
    "GPT2": {**GPT, "use_cache": False},
    "CLIPText": {**SIZES, "eos_token_id": 98},
    "DebertaV2": {
        **SIZES,
        "relative_attention": True,
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    },
}
NAMES = ["input_ids", "attention_mask"]


def by_position(torch, model):
    """The first output by position, as exporters want it."""

    class Positional(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask, return_dict=False)[0]

    return Positional()


def feeds(records, length):
    random = np.random.default_rng(100 * records + length)
    mask = np.ones((records, length), np.int64)
    for row in mask:
        row[random.integers(1, length + 1) :] = 0
    return {"input_ids": random.integers(4, 97, (records, length)), "attention_mask": mask}


@pytest.mark.parametrize(("dynamo", "opset"), [(False, 14), (False, 17), (True, 18), (True, 21)])
@pytest.mark.parametrize("name", MODELS)
def test_encoders(name, dynamo, opset, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**MODELS[name])
    model = by_position(torch, getattr(transformers, f"{name}Model")(config).eval()).eval()
    example = tuple(torch.from_numpy(one) for one in feeds(2, 12).values())
    axes = {0: "batch", 1: "sequence"}
    how = {"dynamic_axes": {**dict.fromkeys(NAMES, axes), "y": {0: "batch"}}}
    if dynamo:
        dims = {axis: torch.export.Dim(what) for axis, what in axes.items()}
        how = {"dynamic_shapes": (dims, dims), "external_data": False}
    path = tmp_path / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            example,
            str(path),
            dynamo=dynamo,
            opset_version=opset,
            input_names=NAMES,
            output_names=["y"],
            **how,
        )
        net = sparknet.Net(path)
    for records, length in ((1, 7), (3, 12), (2, 1), (4, 40)):
        given = feeds(records, length)
        want = run(path, given)["y"]
        got = net.forward(given, outputs=["y"])["y"]
        np.testing.assert_allclose(got, want, atol=TOLERANCE * max(1, np.abs(want).max()))
