"""Names of before 0.2: they work, and a DeprecationWarning at the user's line says the new one."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from sparknet import renamed
from sparknet.net import Net
from tests.training import small


@contextmanager
def warns(*sentences: str) -> Iterator[None]:
    """Exactly these warnings, each at a line of this file or of dataclasses.replace."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    found = [one for one in found if issubclass(one.category, DeprecationWarning)]
    assert [str(one.message) for one in found] == list(sentences)
    assert {Path(one.filename).name for one in found} <= {"test_renamed.py", "dataclasses.py"}


def test_a_keyword_under_its_old_name():
    @renamed.keywords(old="new")
    def given(first: int, new: int = 0) -> tuple[int, int]:
        return first, new

    call = given
    with warns():
        assert call(1, new=2) == (1, 2)
    with warns("old= is called new= now"):
        assert call(1, old=3) == (1, 3)


def test_trainer_and_its_stage():
    pytest.importorskip("pyspark")
    from sparknet.spark import Trainer
    from sparknet.spark.pipeline import NetEstimator

    make = Trainer
    with warns():
        new = make(small.settings(), weights="a.caffemodel", weight_column="w")
    with warns("init_weights= is called weights= now", "weight= is called weight_column= now"):
        old = make(small.settings(), init_weights="a.caffemodel", weight="w")
    assert (old.weights, old.weight_column) == (new.weights, new.weight_column)
    with warns("Trainer.weight is called weight_column now"):
        assert old.weight == "w"
    with warns("weight= is called weight_column= now"):
        changed = replace(old, weight="v")
    assert (changed.weights, changed.weight_column) == ("a.caffemodel", "v")
    stage = NetEstimator(small.settings())
    with warns("init_weights= is called weights= now"):
        stage.setParams(init_weights="b.caffemodel")
    assert stage.trainer.weights == "b.caffemodel"
    with warns("weight= is called weightCol= now"):
        assert NetEstimator(small.settings(), weight="w").getWeightCol() == "w"
    assert stage.getParam("init_weights") is stage.getParam("weights")
    with warns("NetEstimator.setInitWeights is called setWeights now"):
        stage.setInitWeights("c.caffemodel")
    with warns("NetEstimator.getInitWeights is called getWeights now"):
        assert stage.getInitWeights() == "c.caffemodel"


def test_the_featurizers_output(tmp_path):
    pytest.importorskip("pyspark")
    from sparknet.spark.pipeline import NetFeaturizer

    net = small.settings().net_param
    with warns():
        assert NetFeaturizer(net, output="ip1", random=True).getOutput() == "ip1"
    with warns("layer= is called output= now"):
        old = NetFeaturizer(net, layer="ip1", random=True)
    with warns("NetFeaturizer.getLayer is called getOutput now"):
        assert old.getLayer() == "ip1"
    assert old.getParam("layer") is old.output


def test_the_loaders_bad_images(tmp_path):
    from sparknet.loaders import ImageFiles

    (tmp_path / "list").write_text("a.png 1\n")
    read = ImageFiles
    with warns("damaged= is called invalid= now"):
        assert not read(tmp_path / "list", damaged="raise").reader.skips
    with warns("damaged= is called invalid= now", "invalid='skip' is called invalid='drop' now"):
        assert read(tmp_path / "list", damaged="skip").reader.skips


def test_functions_of_the_spark_package():
    pytest.importorskip("pyspark")
    import sparknet.spark as room

    for old, new in {"kept": "cached", "forget": "clear_cache", "planning_on": "runner"}.items():
        with warns(f"sparknet.spark.{old} is called {new} now"):
            assert getattr(room, old) is getattr(room, new)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = room.nothing


@pytest.mark.parametrize(
    ("room", "old", "new"),
    [
        ("sparknet.training", "Plan", "RunPlan"),
        ("sparknet.proto", "State", "SolverState"),
        ("sparknet.models", "State", "ConvLSTMState"),
        ("sparknet.spark", "Trained", "SparkTrained"),
    ],
)
def test_classes(room, old, new):
    if room == "sparknet.spark":
        pytest.importorskip("pyspark")
    module = import_module(room)
    with warns(f"{room}.{old} is called {new} now"):
        assert getattr(module, old) is getattr(module, new)
    assert new in module.__all__


def test_quantize():
    with warns():
        new = _in_float32(exclude=["ip1"], most_records=4)
    with warns("float32= is called exclude= now", "records_used= is called most_records= now"):
        old = _in_float32(float32=["ip1"], records_used=4)
    assert old == new
    assert "ip1" in new


def _in_float32(**words):
    """The layers that multiply in float32 nevertheless."""
    net, rng = Net(small.settings().net_param), np.random.default_rng(0)
    records = {"x": rng.random((8, 3), np.float32), "t": rng.random((8, 2), np.float32)}
    quantize = net.quantize
    quantize(records, **words)
    return list(net.described.int8_param.float32_layer)


def test_the_room_of_listeners():
    from sparknet import report

    with warns("sparknet.summary.History is called sparknet.report.History now"):
        assert import_module("sparknet.summary").History is report.History
    with pytest.raises(AttributeError, match=r"'sparknet\.summary' has no attribute 'nothing'"):
        _ = import_module("sparknet.summary").nothing
