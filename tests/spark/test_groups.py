"""What tests share is started once: all that use it are in one group."""

import re
from pathlib import Path

import pytest

pytest.importorskip("xdist")

from tests.spark.groups import GROUPS, Groups

HERE = Path(__file__).parent
USES = {"the standalone cluster": r"\bstandalone\b", "the Connect server": r"\bconnect_server\b"}


def test_the_tests_are_there():
    for one in GROUPS:
        file, _, function = one.partition("::")
        assert f"def {function}" in (HERE.parents[1] / file).read_text(), one


@pytest.mark.parametrize("what", USES)
def test_all_files_that_use_it_are_in_its_group(what):
    using = {
        f"tests/spark/{file.name}"
        for file in HERE.glob("test_*.py")
        if re.search(rf"^def test_.*\([^)]*{USES[what]}", file.read_text(), re.MULTILINE)
    }
    assert using == {file for file, group in GROUPS.items() if group == what}


def test_a_group_is_one_piece_of_work():
    split = Groups._split_scope
    names = ["test_faults.py::test_a[b.py-c]", "test_submit.py::test_d@e", "test_model.py::test_f"]
    names.append("test_session.py::test_a_local_spark_beside_spark_connect[x]@y")
    found = [split(None, f"tests/spark/{name}") for name in names]
    assert found[0] == found[1] == "the standalone cluster"
    assert found[2] == "tests/spark/test_model.py::test_f"
    assert found[3] == "the port 15002"
