"""A setting of training is declared once: signatures and what reaches the workers follow it."""

from __future__ import annotations

import inspect
import pickle
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest

import sparknet
import sparknet.spark
from sparknet.errors import SettingError, SpecError
from sparknet.loaders.image_settings import ImageKeywords
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.training import Averaging, simulate, train
from sparknet.training.schedule import Schedule
from sparknet.training.settings.fields import (
    called_with,
    described,
    documented,
    setting,
    settings_of,
    values_of,
)
from sparknet.training.settings.kinds import (
    Callback,
    Choice,
    Kind,
    Name,
    Names,
    Number,
    Ports,
    Switch,
    Whole,
)
from sparknet.training.settings.training import (
    LocalSettings,
    ProcessSettings,
    RunSettings,
    TrainingSettings,
)
from sparknet.training.virtual.simulation import SimulationSettings

SEVERAL = (Schedule, TrainingSettings, RunSettings, LocalSettings)


@dataclass(frozen=True, kw_only=True)
class More(ProcessSettings):
    """The settings of `train`, and one that is new."""

    rest_every: int = setting(0, Whole(0), "Rounds between rests; 0 means never.", "rounds")


@called_with(More)
def train_more(given: More) -> More:
    """Train and rest."""
    return given


def test_a_new_setting_is_declared_in_one_place():
    made = train_more("solver", "data", rest_every=3, steps=5)
    assert (made.rest_every, made.steps, made.validate_every) == (3, 5, 10)
    told = inspect.signature(train_more).parameters["rest_every"]
    assert (told.default, told.annotation, told.kind) == (0, "int", told.KEYWORD_ONLY)
    assert "``rest_every`` (0 unless given): Rounds between rests; 0 means" in str(
        train_more.__doc__
    )
    assert train_more.__annotations__["rest_every"] == "int"
    with pytest.raises(SettingError, match="rest_every must be at least 0, not -1"):
        train_more("solver", "data", rest_every=-1)
    assert "rest_every" in str(described(More).__doc__)


@pytest.mark.parametrize("kind", [ProcessSettings, SimulationSettings, sparknet.spark.Trainer])
def test_each_setting_stands_below_one_heading_of_the_docstring(kind):
    told = documented("It trains.", kind)
    assert told.startswith("It trains.\n\nWorkers:\n\n``strategy``")
    assert "Other settings" not in told
    for name in settings_of(kind):
        assert told.count(f"\n``{name}``") == 1, name
    assert "Other settings:\n\n``rest_every``" in documented("", More)


@pytest.mark.parametrize(
    ("function", "kind"), [(train, ProcessSettings), (simulate, SimulationSettings)]
)
def test_signatures_are_those_of_the_settings(function, kind):
    known = inspect.signature(function).parameters
    assert list(known)[:2] == ["solver", "data"]
    assert set(known) == {one.name for one in fields(kind)}
    assert all(one.kind is one.KEYWORD_ONLY for one in [*known.values()][2:])
    for name, told in settings_of(kind).items():
        if (function, name) != (simulate, "workers"):
            assert known[name].default == told.default
        assert told.said.endswith(".")
        assert f"``{name}``" in function.__doc__
    assert set(known) - {"solver", "data"} == {
        *settings_of(kind),
        *values_of(Preprocessing(), ImageKeywords),
    }


def test_calls_of_before_are_taken():
    """The keywords and defaults that `train` had when each was written by hand."""
    known = inspect.signature(sparknet.train).parameters
    before = {
        **dict.fromkeys(("validation", "weights", "steps", "epochs", "seconds", "metric", "goal")),
        **dict.fromkeys(("patience", "snapshots", "threads", "protection", "on_event")),
        "deadline": None,  # 60 seconds, but in runs whose members change
        "workers": 1,
        "strategy": "averaging",
        "validate_every": 10,
        "histograms_every": 0,
        "metrics": (),
        "diverged": 20.0,
        "snapshot_every": 0,
        "keep": 3,
        "resume": False,
        "seed": None,
        "shuffle": True,
        "precision": "float32",
        "backend": "embedded",
    }
    assert {name: known[name].default for name in before} == before
    assert inspect.signature(simulate).parameters["workers"].default is inspect.Parameter.empty


def test_no_setting_is_declared_twice():
    for kind in SEVERAL:
        mine = [name for name in vars(kind).get("__annotations__", {}) if name != "_"]
        others = [one for one in SEVERAL if one is not kind]
        assert not [one for one in others for name in mine if name in vars(one)["__annotations__"]]


def test_keywords_of_images_are_those_of_preprocessing():
    assert [one.name for one in fields(ImageKeywords)] == [
        one.name for one in fields(Preprocessing)
    ]


def test_words_that_are_no_settings():
    with pytest.raises(SpecError, match="no keyword 'step'; did you mean 'steps'"):
        train("solver", "data", step=3)
    with pytest.raises(SpecError, match="no keyword 'preprocessing': its settings are keywords"):
        train("solver", "data", preprocessing=None)
    with pytest.raises(SpecError, match="no keyword 'snapshots'"):
        simulate("solver", "data", workers=1, snapshots="here")
    with pytest.raises(TypeError, match="missing a required argument: 'data'"):
        train("solver")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Whole(1), "3", 3),
        (Number(above=0), "0.5", 0.5),
        (Choice(("max", "min")), "min", "min"),
        (Name(), "loss", "loss"),
        (Names(), "mae,r2", ["mae", "r2"]),
        (Ports(), "0,7000", [0, 7000]),
        (Kind(), "any", "any"),
    ],
)
def test_what_a_text_means(kind, text, value):
    assert kind.read(text) == value
    assert kind.fault(value) is None


@pytest.mark.parametrize(
    ("kind", "text", "value", "fault"),
    [
        (Whole(1), "0", 0, "must be at least 1"),
        (Whole(), "1.5", 1.5, "must be a whole number"),
        (Whole(), "x", True, "must be a whole number"),
        (Number(above=0), "0", 0, "must be more than 0"),
        (Number(least=1), "nan", float("nan"), "must be at least 1"),
        (Number(), "inf", float("inf"), "must be finite"),
        (Number(), "much", "much", "must be a number"),
        (Choice(("max", "min")), "best", "best", "must be 'max' or 'min'"),
        (Ports(), "0,70000", [0, 70000], "must be a list of numbers up to 65535"),
    ],
)
def test_what_is_refused(kind, text, value, fault):
    assert kind.fault(value) == fault
    with pytest.raises(ValueError, match=fault):
        kind.read(text)


def test_what_no_text_can_be():
    assert not Callback().readable
    assert Callback().fault(3) == "must be a function of an event"
    assert Callback().fault(print) is None
    assert Switch().fault("no") == "must be True or False"
    assert Switch().fault(False) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"snapshot_every": 2}, "snapshot_every=2 needs snapshots, a path"),
        ({"steps": 1, "epochs": 1}, "give steps or epochs, not both"),
        ({"metrics": "mae"}, "metrics must be a list of names, not 'mae'"),
        ({"metrics": ["mea"]}, "there is no metric 'mea'; did you mean 'mae'"),
        ({"deadline": 0}, "deadline must be more than 0, not 0"),
        ({"epochs": -1.0}, "epochs must be at least 0, not -1.0"),
        ({"seed": 1.5}, "seed must be a whole number, not 1.5"),
        ({"patience": 1, "validate_every": 0}, "patience=1 counts validations"),
        (
            {"protection": "rot13"},
            "protection must be 'sealed', 'encrypted' or 'none', not 'rot13'",
        ),
    ],
)
def test_settings_that_are_refused(wrong, said):
    with pytest.raises(SettingError, match=said):
        RunSettings(**wrong)


def test_the_plan_of_settings():
    given = RunSettings(epochs=2, workers=3, keep=5, patience=4, snapshots=Path("x"))
    plan = given.plan("small", True, records=100, batch_size=7)
    assert (plan.steps, plan.keep, plan.patience, plan.net) == (10, 5, 4, "small")
    assert (plan.records, plan.batch_size, plan.validate_every) == (100, 7, 10)
    assert replace(given, patience=None).plan("small", False).validate_every == 0
    with pytest.raises(SettingError, match="patience=4 counts validations, and there are none"):
        given.plan("small", False)
    with pytest.raises(SettingError, match="a plan needs an end"):
        RunSettings().plan("small", False)
    assert pickle.loads(pickle.dumps(replace(given, strategy=Averaging(3)))).strategy == Averaging(
        3
    )


def test_validations_without_data_are_no_silence():
    settings = RunSettings(steps=5, validate_every=3)
    with pytest.warns(UserWarning, match="validate_every=3 counts for nothing: there is no vali"):
        plan = settings.plan("net", validates=False)
    assert plan.validate_every == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replace(settings, validate_every=10).plan("net", validates=False)
        assert settings.plan("net", validates=True).validate_every == 3
