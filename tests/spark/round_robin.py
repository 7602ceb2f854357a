"""What Spark's tasks train on, in an order from which virtual workers are dealt the same."""

from collections import defaultdict

import numpy as np

from sparknet.loaders import ArrayRecords
from sparknet.loaders.order import Order
from sparknet.spark.train.frame import numbered
from sparknet.spark.train.ingest import HELD, ROW


def deal(records, training, validation, workers, each):
    """The first so many records of each worker, card by card: unshuffled, `Order` deals them.

    ``records`` are the training rows in their order; Spark shuffles them with seed 0.
    """
    columns = {name: name for name in records.columns}
    both = numbered(training, validation, columns, workers, {})
    numbers: dict[int, list[int]] = defaultdict(list)
    for part, number in both.mapInArrow(_rows, "part int, row long").collect():
        numbers[part].append(number)
    listed = sorted(row for rows in numbers.values() for row in rows)
    place = {row: at for at, row in enumerate(listed)}
    hands = []
    for part in range(workers):
        mine = np.array([place[row] for row in sorted(numbers[part])])
        assert len(mine) >= each, "a second epoch would be dealt otherwise"
        hands.append(mine[Order(len(mine)).next(each)])
    whole = records.take(slice(0, len(records)))
    order = np.stack(hands, 1).ravel()
    return ArrayRecords(**{name: values[order] for name, values in whole.items()})


def _rows(batches):
    """The task and the number of each training row."""
    import pyarrow as pa
    from pyspark import TaskContext

    part = TaskContext.get().partitionId()
    for batch in batches:
        held = batch.column(HELD).to_numpy(zero_copy_only=False)
        numbers = batch.column(ROW).to_numpy()[~held]
        yield pa.RecordBatch.from_pydict(
            {"part": pa.array([part] * len(numbers), pa.int32()), "row": pa.array(numbers)}
        )
