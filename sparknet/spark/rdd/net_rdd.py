"""net_rdd: nets on the executors, one for each partition: SparkNet's Listing 3 (ICLR 2016)."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import reduce
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.spark.cluster.by_value import by_value
from sparknet.spark.rdd.net_home import NetHome, NetJob, NetReport, NetStatus, Step, StoredRecords
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark import RDD

Result = TypeVar("Result")
NetReports = dict[int, NetReport]

_TRIES = 4
_SENTENCE = re.compile(r"^sparknet\.errors\.\w+: (.+)$", re.MULTILINE)


def net_rdd(data: RDD[Any], make: Callable[[StoredRecords], Net]) -> NetRDD:
    """Return nets on the executors: for each partition of an RDD one that ``make`` returns.

    ``make`` takes the partition's records, which can be iterated repeatedly, and returns a `Net`
    that has them as its training data.  No job runs yet.
    """
    if hasattr(data, "mapInArrow"):
        data = data.rdd
    if not hasattr(data, "mapPartitionsWithIndex"):
        raise SparkError(f"net_rdd takes an RDD, not a {type(data).__name__}")
    return NetRDD(data, make)


class NetRDD:
    """Nets that live on the executors from job to job, each with its solver and its records.

    A step is a function of a net.  Each net makes each step exactly once, in the order of the
    calls, whatever Spark runs again.
    """

    def __init__(self, data: RDD[Any], make: Callable[[StoredRecords], Net]) -> None:
        self._data, self._make, self._name = data, make, f"{uuid.uuid4().hex[:12]}"
        self._homes = self._settle()
        self._waiting: list[tuple[int, Step]] = []
        self._count = self._done = 0
        self._last: WeightCollection | None = None
        self._reports: NetReports = {}
        self._lock = RLock()

    @property
    def status(self) -> list[NetStatus]:
        """The history of each net, by partition; empty before the first action."""
        return [self._reports[part].status for part in sorted(self._reports)]

    def map(self, step: Callable[[Net], Result]) -> NetResults[Result]:
        """Have each net make a step in the next action, and return its results.

        A step whose results nobody takes is made too, in its turn.
        """
        with self._lock:
            self._count += 1
            self._waiting.append((self._count, step))
            return NetResults(self, self._count)

    def foreach(self, step: Step) -> None:
        """Have each net make a step now."""
        number = self.map(step)._number
        self._act(number, lambda results: results.foreach(_ignore))

    def unpersist(self) -> None:
        """Remove the nets' records and states from the executors."""
        self._homes.foreach(_remove)
        self._homes.unpersist()

    def _settle(self) -> RDD[NetHome]:
        name = self._name

        def settle(numbered: Any) -> Iterator[NetHome]:
            part, records = numbered
            yield NetHome.settle(name, part, records)

        work = by_value(settle)
        return self._data.mapPartitionsWithIndex(
            lambda part, records: work((part, records))
        ).persist()

    def _act(self, number: int, finish: Callable[[RDD[Any]], Any]) -> Any:
        """Have the nets make all steps up to one, and finish the results of that one."""
        with self._lock:
            if number <= self._done:
                raise SparkError(
                    "the results of this step are gone: take them once, and before an action on a "
                    "later step"
                )
            steps = [pair for pair in self._waiting if pair[0] <= number]
            self._waiting = [pair for pair in self._waiting if pair[0] > number]
            value, reports = self._run(steps, finish)
            self._done = number
            self._reports |= {part: self._added(report) for part, report in reports.items()}
            return value

    def _run(
        self, steps: list[tuple[int, Step]], finish: Callable[[RDD[Any]], Any]
    ) -> tuple[Any, NetReports]:
        """Run a job, and again where nets were lost: with the last mean, which they begin from."""
        context = self._data.context
        places = {part: report.place for part, report in self._reports.items()}
        last, builds_lost = None, self._last is None
        try:
            for _ in range(_TRIES):
                reports = context.accumulator({}, NetReportsParam())
                work = NetJob(
                    *(self._name, self._make, self._done, steps, places, last, builds_lost, reports)
                )
                value = finish(self._homes.mapPartitions(by_value(work)))
                missing = [report for report in reports.value.values() if report.place is None]
                if not missing:
                    return value, reports.value
                if not all(report.has_home for report in missing):
                    self._homes.unpersist()
                    self._homes = self._settle()
                if last is None and self._last is not None:
                    last, builds_lost = context.broadcast(self._last), True
        except Exception as error:
            if sentences := _SENTENCE.findall(str(error)):
                raise SparkError(sentences[-1]) from error
            raise
        finally:
            if last is not None:
                last.destroy()
        numbers = [report.status.partition for report in missing]
        raise SparkError(f"the nets of partitions {numbers} were lost {_TRIES} times in a row")

    def _added(self, report: NetReport) -> NetReport:
        """Return the report with the counts of all jobs."""
        if report.status.partition not in self._reports:
            return report
        old, new = self._reports[report.status.partition].status, report.status
        counts = {
            name: getattr(old, name) + getattr(new, name) for name in ("built", "moved", "lost")
        }
        return replace(report, status=replace(new, **counts))


class NetResults(Generic[Result]):
    """The results of a step: each action on them runs the step, and can run once."""

    def __init__(self, nets: NetRDD, number: int) -> None:
        self._nets, self._number = nets, number

    def collect(self) -> list[Result]:
        """Return the results by partition."""
        results: list[Result] = self._nets._act(self._number, lambda results: results.collect())
        return results

    def reduce(self, function: Callable[[Result, Result], Result]) -> Result:
        """Return the results combined by a function of two, on the driver."""
        return reduce(function, self.collect())

    def sum(self) -> Result:
        """Return the sum, of WeightCollections or numbers; it is computed on the executors."""
        total: Result = self._summed()[0]
        return total

    def mean(self) -> Result:
        """Return the mean, of WeightCollections or numbers; it is computed on the executors.

        A net that is lost later begins from the last mean of weights.
        """
        total, count = self._summed()
        total /= count
        if isinstance(total, WeightCollection):
            self._nets._last = total
        mean: Result = total
        return mean

    def _summed(self) -> Any:
        return self._nets._act(self._number, lambda results: tree_sum(results))


class NetReportsParam:
    """Reports by partition, as an AccumulatorParam of PySpark; the newest of a partition counts."""

    def zero(self, value: NetReports) -> NetReports:
        return {}

    def addInPlace(self, value1: NetReports, value2: NetReports) -> NetReports:  # noqa: N802
        value1 |= value2
        return value1


def _remove(home: NetHome) -> None:
    shutil.rmtree(home.folder, ignore_errors=True)


def _ignore(result: Any) -> None:
    """Take a result, and do nothing."""


Sum = tuple[Any, int]
"""A sum, and of how many."""


def tree_mean(weights: RDD[WeightCollection], fan_in: int = 4) -> WeightCollection:
    """Return the mean of all collections of an RDD.

    Each task adds at most ``fan_in`` collections, level by level, and the driver receives one sum.
    Unlike with ``reduce``, its memory does not grow with the number of workers.
    """
    summed = tree_sum(weights, fan_in)
    if summed is None:
        raise SparkError("there are no weights to take the mean of: the RDD is empty")
    total: WeightCollection = summed[0]
    total /= summed[1]
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
