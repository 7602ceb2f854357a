"""A steady round on Spark enters few files of ours, and a batch goes straight into the blobs."""

from benchmarks.round_trace import traces


def test_a_steady_round_and_a_batch_enter_few_files(session):
    found = traces(session)
    rooms = ("training/", "comm/", "spark/")
    entered = [name for name in found["entered"] if name.startswith(rooms)]
    assert {"training/workers/rounds.py", "training/strategies/averaging.py"} <= set(entered)
    assert len(entered) <= 12, entered
    ends = ("caffe/blob.py", "native/")
    way = [name for name in found["way"] if not name.startswith(ends)]
    assert {"net/learner.py", "net/feed.py"} <= set(way)
    assert len(way) <= 4, way
