"""The reference vectors are all there: as many cases as were recorded, each with its files."""

import pytest

from tests.goldens import GOLDENS, SUITES, index


@pytest.mark.parametrize("suite", SUITES)
def test_every_recorded_case_is_listed(suite):
    names = [str(entry["name"]) for entry in index(suite)]
    assert len(names) == len(set(names)) == SUITES[suite]


def test_every_suite_is_known():
    actual = {str(path.parent.relative_to(GOLDENS)) for path in GOLDENS.rglob("index.json")}
    assert actual == set(SUITES)


@pytest.mark.parametrize(
    ("suite", "ending", "beside"),
    [("layers", ".prototxt", 0), ("nets", ".npz", 0), ("solvers", ".net.prototxt", 0)],
)
def test_every_file_is_listed(suite, ending, beside):
    files = {path.name[: -len(ending)] for path in (GOLDENS / suite).glob(f"*{ending}")}
    assert len(files - {str(entry["name"]) for entry in index(suite)}) == beside
