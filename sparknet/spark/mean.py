"""tree_mean: the mean of an RDD of weights, computed on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sparknet.errors import SparkError
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark import RDD

_Sum = tuple[WeightCollection, float]


def tree_mean(weights: RDD[WeightCollection], fan_in: int = 4) -> WeightCollection:
    """The mean of all collections of an RDD.

    Each task adds at most ``fan_in`` collections, level by level, and the driver receives one sum.
    Unlike with ``reduce``, its memory does not grow with the number of workers.
    """
    sums = weights.map(lambda collection: (collection, 1.0)).mapPartitions(_summed)
    while (parts := sums.getNumPartitions()) > 1:
        keyed = sums.mapPartitionsWithIndex(
            lambda part, found: ((part // fan_in, one) for one in found)
        )
        fewer = -(-parts // fan_in)
        sums = keyed.partitionBy(fewer, int).values().mapPartitions(_summed)
    found = sums.collect()
    if not found:
        raise SparkError("there are no weights to take the mean of: the RDD is empty")
    total: WeightCollection = found[0][0]
    total /= found[0][1]
    return total


def _summed(found: Iterable[_Sum]) -> Iterator[_Sum]:
    """Yields the sum of all, or nothing if there are none."""
    total: WeightCollection | None = None
    count = 0.0
    for collection, number in found:
        if total is None:
            total = collection
        else:
            total += collection
        count += number
    if total is not None:
        yield total, count
