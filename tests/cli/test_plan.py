"""`sparknet plan` on a solver file."""

import json

import pytest

from sparknet.cli import main
from sparknet.proto import write_text
from tests.training import small


@pytest.fixture
def solver(tmp_path):
    path = tmp_path / "solver.prototxt"
    write_text(path, small.settings())
    return str(path)


GIVEN = ("--step", "0.5", "--bandwidth", "0.001", "--latency", "0", "--workers", "1,4")


def test_numbers_by_hand_need_no_measuring(solver, capsys):
    assert main(["plan", "-solver", solver, *GIVEN]) == 0
    told = capsys.readouterr().out
    assert "measured" not in told
    assert "a step takes 500 ms, a synchronisation 192 ms" in told  # 1.5 · 128 B at 1 kB/s
    assert "advice: " in told


def test_json_is_what_a_report_reads(solver, capsys):
    assert main(["plan", "-solver", solver, *GIVEN, "--target", "cost", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["event"], made["target"], made["workers"]) == ("plan", "cost", 1)
    assert {row["workers"] for row in made["rows"]} == {1, 4}


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["--workers", "two"], "argument --workers: 'two' must be whole numbers of at least 1"),
        (["--master", "local[2]"], "--master is for work on Spark"),
        (["--spark"], "--spark measures with data"),
        (["--accuracy", "0.9"], "accuracy=0.9 needs data and validation data"),
    ],
)
def test_wrong_use_is_one_line(solver, words, wrong, capsys):
    try:
        status = main(["plan", "-solver", solver, *words])
    except SystemExit as error:
        status = int(str(error.code))
    assert status in (1, 2)
    assert wrong in capsys.readouterr().err
