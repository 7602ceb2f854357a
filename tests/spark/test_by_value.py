"""Functions whose Python may lack sparknet."""

import pickle
import sys
from functools import partial

import pytest

from sparknet.spark.cluster.by_value import by_value

pytest.importorskip("pyspark")


def doubled(batches, times):
    return (one * times for one in batches)


def test_a_python_without_the_package_says_so_in_one_sentence(monkeypatch):
    from pyspark.cloudpickle import dumps

    import sparknet.spark.cluster.preflight as ours

    sent = dumps(by_value(partial(doubled, times=3)))
    assert list(pickle.loads(sent)([1, 2])) == [3, 6]
    told = dumps(by_value(ours.tried))
    assert pickle.loads(told).__name__ == "sparknet"
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    for name in [*sys.modules]:
        if name.partition(".")[0] == "sparknet":
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError, match=r"^the executors' Python cannot import sparknet: install"
    ):
        pickle.loads(told)([])


def test_a_module_of_the_user_is_missing(monkeypatch):
    from pyspark.cloudpickle import dumps

    sent = dumps(by_value(partial(doubled, times=3)))
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    monkeypatch.setitem(sys.modules, doubled.__module__, None)
    with pytest.raises(
        ImportError, match=r"cannot import 'tests\.spark\.test_by_value': install it"
    ):
        pickle.loads(sent)([])
