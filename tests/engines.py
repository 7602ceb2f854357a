"""Tests of the native engine alone, which are left out where SPARKNET_ENGINE names another."""

import os
from collections.abc import Iterable

import pytest

_FUSED = "which layers the native engine computes together, and in what layouts"
_NARROW = "the native kernels for bfloat16"
_PROCESSOR = "a processor without bfloat16, in which PyTorch computes everywhere"
_EIGHT = "numbers of eight bits, which the engine torch does not multiply"
_BITS = "the bits of the native loops, whatever the number of threads"
_BATCH = "the bits of a record, whatever the number of those beside it"
_MEMORY = "what the native engine's memory is shared and given back for"

NATIVE_ONLY = {
    "caffe/layers/test_attention.py": _FUSED,
    "caffe/layers/test_endings.py": _FUSED,
    "caffe/layers/test_inner_product.py::test_the_bits_of_few_rows": _BITS,
    "caffe/layers/test_learned_weights.py": _NARROW,
    "caffe/layers/test_lstm_twins.py": _FUSED,
    "caffe/layers/test_mobile.py": _FUSED,
    "caffe/layers/test_narrow.py": _NARROW,
    "caffe/layers/test_points.py": _FUSED,
    "caffe/layers/test_rounded.py": _NARROW,
    "caffe/layers/test_gather.py::test_batch_reindex_refuses": "a pass back after a refusal",
    "caffe/layers/test_separable.py": _FUSED,
    "caffe/layers/test_weighted.py": _NARROW,
    "caffe/layers/test_winograd.py": _FUSED,
    "caffe/test_chains.py": _FUSED,
    "caffe/test_fusions.py": _FUSED,
    "caffe/test_int8.py": _EIGHT,
    "caffe/test_lean_training.py::test_copies_of_weights_last_for_a_layer": _MEMORY,
    "caffe/test_narrow_kernels.py": _NARROW,
    "caffe/test_precision.py": _NARROW,
    "caffe/test_skipped_pixels.py": _FUSED,
    "net/test_budget.py::test_quantize_counts_the_weights_at_hand": _EIGHT,
    "net/test_precision.py::test_where_there_is_none_one_sentence_says_so": _PROCESSOR,
    "net/test_quantize.py": _EIGHT,
    "onnx/test_quantised.py": _EIGHT,
    "spark/test_int8.py": _EIGHT,
    "spark/test_loaded.py::test_a_stage_makes_the_columns_that_spark_makes[labels]": _BATCH,
    "spark/test_loaded.py::test_a_stage_makes_the_columns_that_spark_makes[yes or no]": _BATCH,
    "spark/test_round_trace.py": "how many files of Python a round of the native engine enters",
    "spark/test_shared_weights.py::test_no_copies_of_mapped_weights": _MEMORY,
}
"""By the beginning of their names, and why."""

KEEPS_A_VIEW = {
    "caffe/test_keep_blobs.py::test_a_blob_that_was_looked_at_before_follows": "",
    "caffe/layers/test_recurrent.py::test_a_static_input_that_is_forced": "",
    "caffe/solvers/test_solver.py::test_callbacks_come_at_their_moments": "",
}
"""Tests that look at an array from before a pass, which on another device is not the newest."""


def leave_out(items: Iterable[pytest.Item]) -> None:
    if os.environ.get("SPARKNET_ENGINE") != "torch":
        return
    apart = os.environ.get("SPARKNET_DEVICE", "cpu") != "cpu"
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        for prefix, why in NATIVE_ONLY.items():
            if name.startswith(prefix):
                item.add_marker(pytest.mark.skip(reason=f"of the native engine: {why}"))
        if apart and any(name.startswith(prefix) for prefix in KEEPS_A_VIEW):
            item.add_marker(pytest.mark.skip(reason="keeps a view of values on another device"))
