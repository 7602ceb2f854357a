import numpy as np

from benchmarks.loaders import JOBS, Job, compare, jpeg_tar, ours, plain
from sparknet.loaders import ArrayRecords, Tars


def test_both_sides_do_the_same_work(tmp_path):
    job = Job("small", 10, (3, 6, 6), 5, crop=6, scale=0.5, means=(1, 2, 3))
    data = np.full((10, 3, 6, 6), 7, np.uint8)
    got = next(ours(job, ArrayRecords(data=data)))
    want = next(plain(job, data))
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
    assert {job.stored[0] for job in JOBS} == {1, 3}
    tars = Tars(jpeg_tar(tmp_path / "some.tar", 4), size=(6, 6))
    sides = {"sparknet": ours(Job("tar", 4, (3, 6, 6), 2), tars)}
    assert compare("tar", sides, 1, 0).startswith("tar ")
