"""Data sets as the command line names them, and as a solver's nets name them."""

from pathlib import Path

import numpy as np
import pytest

from sparknet.cli.inputs import of_solver, open_records
from sparknet.cli.verb import WrongUse
from sparknet.errors import FileError
from sparknet.proto import parse_solver


def test_files_are_chained(task, tmp_path):
    for number in (1, 2):
        np.savez(tmp_path / f"{number}.npz", data=task.images, label=task.labels + number)
    records = open_records([str(tmp_path / "1.npz"), str(tmp_path / "2.npz")])
    assert len(records) == 120
    taken = records.take([0, 60])
    np.testing.assert_array_equal(taken["data"], task.images[[0, 0]])
    assert taken["label"].tolist() == [task.labels[0] + 1, task.labels[0] + 2]


def test_arrays_by_name(task, tmp_path):
    np.save(tmp_path / "a.npy", task.images)
    np.save(tmp_path / "b.npy", task.labels)
    records = open_records([f"data={tmp_path}/a.npy", f"label={tmp_path}/b.npy"])
    assert set(records.columns) == {"data", "label"}
    assert set(open_records([f"{tmp_path}/a.npy"]).columns) == {"data"}
    with pytest.raises(WrongUse, match=r"COLUMN=FILE\.npy"):
        open_records([f"{tmp_path}/a.npy", f"{tmp_path}/b.npy"])
    with pytest.raises(WrongUse, match=r"COLUMN=FILE\.npy"):
        open_records([f"{tmp_path}/a.npy", task.path("lmdb")])
    with pytest.raises(FileError, match=r"none\.npy"):
        open_records([f"{tmp_path}/none.npy"])


def test_what_a_solvers_nets_read(task, tmp_path):
    solver = parse_solver(Path(task.path("solver.prototxt")).read_text(), "solver")
    data, validation = of_solver(solver)
    assert data is not None
    assert validation is not None
    assert (len(data), len(validation)) == (60, 60)
    np.testing.assert_array_equal(data.take(slice(0, 60))["data"], task.images)


def test_a_net_of_image_files(task, tmp_path):
    image = pytest.importorskip("PIL.Image")
    names = []
    for number, values in enumerate(task.images[:4]):
        image.fromarray(values[0]).save(tmp_path / f"{number}.png")
        names.append(f"{number}.png {task.labels[number]}\n")
    (tmp_path / "list.txt").write_text("".join(names))
    data, validation = of_solver(
        parse_solver(
            'net_param { layer { name: "d" type: "ImageData" top: "data" top: "label" '
            f'image_data_param {{ source: "{tmp_path}/list.txt" root_folder: "{tmp_path}/" '
            "batch_size: 2 is_color: false new_height: 6 new_width: 6 } } }",
            "solver",
        )
    )
    assert validation is None
    assert data is not None
    taken = data.take(slice(0, 4))
    np.testing.assert_array_equal(taken["data"], task.images[:4])
    assert taken["label"].tolist() == task.labels[:4].tolist()
