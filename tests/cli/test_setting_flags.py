"""Every setting of training has a flag, made from the setting itself."""

import inspect
from argparse import ArgumentParser
from dataclasses import dataclass

import pytest

from sparknet.cli import command, main, setting_flags
from sparknet.cli.completion import flags_of, subcommands
from sparknet.spark import Trainer
from sparknet.training.planning import plan
from sparknet.training.settings.fields import setting, settings_of
from sparknet.training.settings.kinds import Whole
from sparknet.training.settings.training import ProcessSettings
from tests.cli.conftest import ROOT


@dataclass(frozen=True, kw_only=True)
class More(ProcessSettings):
    rest_every: int = setting(5, Whole(1), "Rounds between rests of 10 %.", "rounds")


def test_a_new_setting_has_a_flag(capsys):
    parser = ArgumentParser()
    setting_flags.add(parser, parser.add_argument_group("more"), settings_of(More))
    chosen = parser.parse_args(["--rest-every", "7", "--no-shuffle", "--metric", "loss"])
    assert setting_flags.keywords_of(chosen, settings_of(More)) == {
        "rest_every": 7,
        "shuffle": False,
        "metric": "loss",
    }
    assert "--rest-every ROUNDS rounds between rests of 10 % (default: 5)" in " ".join(
        parser.format_help().split()
    )
    with pytest.raises(SystemExit):
        parser.parse_args(["--rest-every", "0"])
    assert "argument --rest-every: '0' must be at least 1" in capsys.readouterr().err


def test_every_setting_has_a_flag():
    verb = subcommands(command())["train"]
    flags = {action.dest for action, _ in flags_of(verb)}
    for name, told in {**settings_of(ProcessSettings), **settings_of(Trainer)}.items():
        assert setting_flags.flag_of(name) in flags or not told.kind.readable, name
    assert {"goal", "diverged", "protection", "metric", "ports", "backend", "class_weights"} < flags


def test_every_setting_of_a_plan_has_a_flag():
    flags = {action.dest for action, _ in flags_of(subcommands(command())["plan"])}
    told = setting_flags.of_plan()
    assert {name for name in told if told[name].kind.readable} < flags
    assert {*told, "solver", "data"} <= {*inspect.signature(plan).parameters}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metri", "loss"], "there is no flag '--metri'; did you mean '--metric'?"),
        (["--keep", "0"], "argument --keep: '0' must be at least 1"),
        (["--deadline", "0"], "argument --deadline: '0' must be more than 0"),
        (["--patience", "few"], "argument --patience: 'few' must be a whole number"),
        (["--goal", "best"], "--goal: 'best' is none of max, min"),
        (["--class-weights", "cat"], "'cat' must be NAME=VALUE[,NAME=VALUE]"),
    ],
)
def test_what_is_refused(words, said, capsys):
    with pytest.raises(SystemExit):
        main(["train", "-solver", "none.prototxt", *words])
    assert said in capsys.readouterr().err


def test_other_verbs_are_not_made(monkeypatch):
    """Those of training import it, which takes a while."""
    monkeypatch.setattr(setting_flags, "of_train", lambda: pytest.fail("training was imported"))
    parser = command("sparknet", ["models", "--help"])
    assert [*flags_of(subcommands(parser)["models"])][1:]
    assert len([*flags_of(subcommands(parser)["train"])]) == 1


def test_one_is_for_spark_alone(capsys):
    solver = str(ROOT / "models" / "lenet" / "solver.prototxt")
    assert main(["train", "-solver", solver, "--invalid", "drop"]) == 2
    assert "--invalid is for work on Spark" in capsys.readouterr().err
    assert main(["train", "-solver", solver, "--spark", "--restarts", "2"]) == 2
    assert "--restarts is not for work on Spark" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "name", "value", "said"),
    [
        ("quantize --records 20 out", "most_records", 20, "--records is called --most-records now"),
        (
            "train --spark --weight w",
            "weight_column",
            "w",
            "--weight is called --weight-column now",
        ),
        ("train --steps 7", "iterations", 7, ""),
        ("predict -batch 3", "batch", 3, ""),
        ("draw net -out a.svg", "out", "a.svg", ""),
        ("predict -model m --blobs a,b x.png", "outputs", "a,b", ""),
        ("features -model m -blobs a -out f x.png", "outputs", "a", ""),
    ],
)
def test_other_words_for_a_flag(words, name, value, said, capsys):
    chosen = command().parse_args(words.split())
    assert getattr(chosen, name) == value
    assert capsys.readouterr().err.rstrip("\n").partition(": ")[2] == said
