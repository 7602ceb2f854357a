"""The thread behind a data layer: order, errors, forks, and that it ends."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from sparknet.loaders.batches import Prefetch, room
from tests.goldens import ROOT
from tests.layers.host.nets import images, lmdb, net, of_images, passes


class Counting:
    """Batch n is the number n; batch `bad` cannot be had."""

    opened: list[int]
    closed = 0

    def __init__(self, bad: int = -1) -> None:
        self.bad, self.opened, self.made = bad, [], 0

    def open(self, first: int) -> Counting:
        self.opened.append(first)
        return self

    def make(self, number, spare):
        if number == self.bad:
            raise OSError(f"batch {number}")
        self.made += 1
        out = room([(1,)], spare)
        out[0][:] = number
        return out

    def close(self):
        self.closed += 1


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sparknet-data"]


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def _end(before: list[threading.Thread]) -> None:
    gc.collect()
    for thread in _threads():
        if thread not in before:
            thread.join(10)
            assert not thread.is_alive()


def test_batches_in_order_and_no_more_than_two_ahead():
    source = Counting()
    prefetch = Prefetch(source.open)
    assert source.opened == []
    for number in range(20):
        batch = prefetch.take()
        assert batch[0].tolist() == [number]
        assert source.made <= number + 2
        prefetch.give_back(batch)
    prefetch.close()
    assert (source.opened, source.closed) == ([0], 1)


def test_an_error_comes_up_each_time_and_work_goes_on_after_it():
    source = Counting(bad=2)
    prefetch = Prefetch(source.open)
    for _ in range(2):
        prefetch.give_back(prefetch.take())
    for _ in range(2):
        with pytest.raises(OSError, match="batch 2"):
            prefetch.take()
    source.bad = -1
    assert prefetch.take()[0].tolist() == [2]
    prefetch.close()
    assert source.opened == [0, 2, 2]
    assert source.closed == 3


def test_many_threads_share_a_source():
    prefetch, seen = Prefetch(Counting().open), []

    def work():
        for _ in range(50):
            batch = prefetch.take()
            seen.append(int(batch[0][0]))
            prefetch.give_back(batch)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    prefetch.close()
    assert sorted(seen) == list(range(200))


def test_nets_that_are_dropped_leave_no_thread_and_no_file(tmp_path):
    text = lmdb(of_images(tmp_path, images(5, 1, 3, 3)), 2)
    gc.collect()
    before, files = _threads(), _open_files()
    for number in range(300):
        made = net(text)
        if number % 4 == 0:
            made.forward()
        del made
        if number % 100 == 0:
            gc.collect()
    _end(before)
    gc.collect()
    assert set(_threads()) <= set(before)
    assert _open_files() <= files


def test_closing_a_host(tmp_path):
    before = _threads()
    made = net(lmdb(of_images(tmp_path, images(5, 1, 3, 3)), 2))
    made.forward()
    (host,) = [segment.host for segment in made._runtime.segments]
    assert len(set(_threads()) - set(before)) == 1
    assert host is not None
    host.close()
    assert set(_threads()) <= set(before)


CHILD = """
import os, sys
sys.path.insert(0, {root!r})
from tests.layers.host.nets import net, passes
text = {text!r}
made = net(text, 0)
first = passes(made, 3, "label").tolist()
child = os.fork()
rest = passes(made, 3, "label").tolist()
want = passes(net(text, 0), 6, "label").tolist()
good = first + rest == want
if child == 0:
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) or (0 if good else 2))
"""


@pytest.mark.parametrize("backend", ["LMDB", "list"])
def test_a_forked_child_goes_on_where_its_parent_was(backend, tmp_path):
    from PIL import Image

    from tests.layers.host.nets import source

    pixels = images(7, 8, 9, 3)
    if backend == "LMDB":
        text = lmdb(of_images(tmp_path, pixels.transpose(0, 3, 1, 2)), 2)
    else:
        for number, image in enumerate(pixels):
            Image.fromarray(image).save(tmp_path / f"{number}.png")
        (tmp_path / "list").write_text("".join(f"{n}.png {n}\n" for n in range(7)))
        options = (
            f"source: '{tmp_path}/list' root_folder: '{tmp_path}/' batch_size: 2 shuffle: true"
        )
        text = source("ImageData", image_data_param=options)
    code = CHILD.format(root=str(ROOT), text=text)
    done = subprocess.run([sys.executable, "-c", code], timeout=120)
    assert done.returncode == 0


def test_the_program_ends_while_batches_are_made(tmp_path):
    text = lmdb(of_images(tmp_path, images(50, 3, 64, 64)), 50)
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    code += f"from tests.layers.host.nets import net\nmade = net({text!r})\nmade.forward()"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_blob_that_was_reshaped_by_hand_gets_its_shape_back(tmp_path):
    pixels = images(4, 1, 3, 3)
    made = net(lmdb(of_images(tmp_path, pixels), 2))
    made.blobs["data"].reshape(7, 1)
    np.testing.assert_array_equal(passes(made, 2).reshape(4, 1, 3, 3), pixels)
