"""The mean over an RDD."""

import numpy as np
import pytest

from sparknet.errors import SparkError
from sparknet.spark.rdd.net_rdd import _summed, tree_mean
from sparknet.weights import LayerBlobs, Layout, WeightCollection

LAYOUT = Layout((LayerBlobs("ip", ((2, 3), (2,)), (0, 6)),))


def weights(value: float) -> WeightCollection:
    found = WeightCollection(LAYOUT)
    np.asarray(found.flat)[:] = value
    return found


@pytest.mark.parametrize(("count", "parts", "fan_in"), [(1, 1, 4), (5, 3, 2), (9, 7, 2), (3, 6, 4)])
def test_mean_of_collections(spark, count, parts, fan_in):
    rdd = spark.sparkContext.parallelize(range(count), parts).map(weights)
    mean = tree_mean(rdd, fan_in)
    np.testing.assert_array_equal(np.asarray(mean.flat), np.full(8, (count - 1) / 2, np.float32))
    assert list(mean) == ["ip"]


def test_nothing_to_average(spark):
    with pytest.raises(SparkError, match="the RDD is empty"):
        tree_mean(spark.sparkContext.parallelize([], 2))


def test_a_result_of_none():
    with pytest.raises(SparkError, match="None cannot be added: return weights or a number"):
        list(_summed([(None, 1)]))
