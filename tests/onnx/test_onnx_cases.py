"""onnx's own test cases of every operator that is read or folded: none may come out wrong."""

import pytest

from tests.onnx.cases import KNOWN, every, outcomes


@pytest.mark.slow
def test_no_case_of_an_operator_comes_out_wrong(tmp_path):
    found = {case.name: outcomes(case, tmp_path) for case in every()}
    wrong = {name for name, forms in found.items() if "wrong" in forms.values()}
    assert wrong <= set(KNOWN)
    assert sum("right" in forms.values() for forms in found.values()) > 0.8 * len(found)
    assert len(found) > 700
