"""Counts how onnx's own test cases come out: python -m tests.onnx.cases [--list]

Each case of an operator that is read or folded is taken in four forms: as it is; with its inputs
other than the first as constants; and both with the first axis of its inputs left open.
"""

import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from sparknet import caffe
from sparknet.errors import SparkNetError
from sparknet.onnx import OnnxWarning, read_model
from sparknet.onnx.folding import foldable
from sparknet.onnx.operators import load
from sparknet.onnx.step import OPERATORS
from tests.onnx.graphs import numpy_helper, onnx, save

KNOWN = (
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
)
"""Scales of 0.6: the cases keep a size of 2.4, where onnxruntime and PyTorch have 2."""
FORMS = ("as it is", "constant inputs", "open", "open, constant inputs")


def every():
    """The cases of operators that are read or folded."""
    from onnx.backend.test.case.node import collect_testcases

    load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if _is_known(case)]


def outcomes(case, folder):
    """What comes of each form: right, wrong, or why it is refused."""
    names = [one.name for one in case.model.graph.input]
    given, results = case.data_sets[0]
    feeds = {name: np.asarray(one) for name, one in zip(names, given, strict=False)}
    wanted = dict(zip((one.name for one in case.model.graph.output), results, strict=True))
    return {
        form: _outcome(model, {name: feeds[name] for name in fed}, wanted, folder)
        for form, model, fed in _forms(case.model, feeds)
    }


def _forms(model, feeds):
    names = list(feeds)
    fixed = _copy(model)
    del fixed.graph.input[1:]
    fixed.graph.initializer.extend(numpy_helper.from_array(feeds[one], one) for one in names[1:])
    plain, constant, opened, both = FORMS
    yield plain, model, names
    yield opened, _opened(model), names
    if len(names) > 1:
        yield constant, fixed, names[:1]
        yield both, _opened(fixed), names[:1]


def _copy(model):
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def _opened(model):
    made = _copy(model)
    for one in made.graph.input:
        if one.type.tensor_type.shape.dim:
            one.type.tensor_type.shape.dim[0].dim_param = "n"
    return made


def _outcome(model, feeds, wanted, folder):
    path = save(model, folder)
    try:
        got = _values(path, feeds)
    except SparkNetError as error:
        return _reason(str(error))
    right = all(_agrees(got[name], np.asarray(one)) for name, one in wanted.items())
    return "right" if right else "wrong"


def _reason(text: str) -> str:
    """Without the names and numbers of one model."""
    said = re.sub(r"^.*?\.onnx: ", "", text)
    said = re.sub(r"^(node|layer) '[^']*' ", "", said)
    said = re.sub(r"'[^']*'", "…", said)
    return re.sub(r"\d+", "…", said)


def _values(path, feeds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnnxWarning)
        model = read_model(path)
    net = caffe.Net.from_proto(model.net, caffe.TEST)
    for layer, arrays in zip(model.net.layer, model.arrays, strict=True):
        for blob, array in zip(net.params.get(layer.name, ()), arrays, strict=True):
            blob.data[...] = array
    for name, value in feeds.items():
        if name in net.blobs:
            net.blobs[name].reshape(*value.shape)
            net.blobs[name].data[...] = value
    net.reshape()
    net.forward()
    return {name: np.array(blob.data) for name, blob in net.blobs.items()}


def _agrees(got, want):
    rough = want.dtype.itemsize == 2 and want.dtype.kind not in "iu"
    want = want.astype(np.float32)
    largest = float(np.abs(want[np.isfinite(want)]).max(initial=1e-6))
    allowed = (1e-2 if rough else 1e-4) * largest
    same = got.shape == want.shape
    return same and np.allclose(got, want, rtol=1e-4, atol=allowed, equal_nan=True)


def _is_known(case):
    if case.kind != "node" or case.model is None or not case.model.graph.input:
        return False
    nodes = case.model.graph.node
    if any(node.domain not in ("", "ai.onnx") for node in nodes):
        return False
    arrays = [*case.data_sets[0][0], *case.data_sets[0][1]]
    if any(not isinstance(one, np.ndarray) or one.dtype.kind in "OSUc" for one in arrays):
        return False
    return any(node.op_type in OPERATORS or foldable(node.op_type) for node in nodes)


def main() -> int:
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in every():
            found[case.name] = outcomes(case, Path(folder))
    for form in FORMS:
        said = {name: its[form] for name, its in found.items() if form in its}
        wrong = [name for name, one in said.items() if one == "wrong"]
        counts = {
            "right": sum(one == "right" for one in said.values()),
            "wrong": len(set(wrong) - set(KNOWN)),
            "known": len(set(wrong) & set(KNOWN)),
        }
        refused = len(said) - sum(counts.values())
        print(f"{form}: {len(said)} cases, {counts}, {refused} refused")
        print("".join(f"  wrong: {name}\n" for name in wrong if name not in KNOWN), end="")
    either = sum("right" in its.values() for its in found.values())
    print(f"{either} of {len(found)} are right as they are or with constant inputs")
    reasons = Counter(
        one for its in found.values() for one in its.values() if one not in ("right", "wrong")
    )
    for reason, count in reasons.most_common(None if "--list" in sys.argv else 12):
        print(f"{count:5}  {reason}")
    return int(any("wrong" in its.values() for name, its in found.items() if name not in KNOWN))


if __name__ == "__main__":
    sys.exit(main())
