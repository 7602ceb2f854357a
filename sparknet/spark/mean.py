"""tree_mean and tree_sum: sums and means over an RDD, computed on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark import RDD

Sum = tuple[Any, int]
"""A sum, and of how many."""


def tree_mean(weights: RDD[WeightCollection], fan_in: int = 4) -> WeightCollection:
    """Return the mean of all collections of an RDD.

    Each task adds at most ``fan_in`` collections, level by level, and the driver receives one sum.
    Unlike with ``reduce``, its memory does not grow with the number of workers.
    """
    found = tree_sum(weights, fan_in)
    if found is None:
        raise SparkError("there are no weights to take the mean of: the RDD is empty")
    total: WeightCollection = found[0]
    total /= found[1]
    return total


def tree_sum(values: RDD[Any], fan_in: int = 4) -> Sum | None:
    """Return the sum of all values of an RDD and their number; None if there are none."""
    sums = values.map(lambda value: (value, 1)).mapPartitions(_summed)
    while (parts := sums.getNumPartitions()) > 1:
        keyed = sums.mapPartitionsWithIndex(
            lambda part, found: ((part // fan_in, one) for one in found)
        )
        fewer = -(-parts // fan_in)
        sums = keyed.partitionBy(fewer, int).values().mapPartitions(_summed)
    return next(_summed(sums.collect()), None)


def _summed(found: Iterable[Sum]) -> Iterator[Sum]:
    """Yield the sum of all, or nothing if there are none."""
    total: Any = None
    count = 0
    for value, number in found:
        if value is None:
            raise SparkError("None cannot be added: return weights or a number, net.get_weights()")
        if total is None:
            total = value
        else:
            total += value
        count += number
    if count:
        yield total, count
