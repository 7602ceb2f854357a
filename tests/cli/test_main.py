import re
import subprocess
import sys
from pathlib import Path

import pytest

from sparknet import __version__
from sparknet.cli import VERBS, caffe_flags, command, main
from sparknet.cli.completion import flags_of, subcommands
from sparknet.cli.tools import TOOLS

ROOT = Path(__file__).resolve().parents[2]


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"sparknet {__version__}\n"


def test_without_a_verb(capsys):
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    for verb in VERBS:
        assert verb.name in err


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help_and_its_file(verb, capsys):
    name = verb.name
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert f"sparknet {name}" in capsys.readouterr().out
    assert (ROOT / "sparknet" / "cli" / f"{name}.py").is_file()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_is_documented(verb):
    name = verb.name
    guide = (ROOT / "docs" / "cli.md").read_text()
    _, found, rest = guide.partition(f"\n## sparknet {name}\n")
    assert found, f"docs/cli.md has no section on {name}"
    assert f"sparknet {name}" in rest.partition("\n## ")[0]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_flag_says_what_it_is_for(verb):
    parser = subcommands(command())[verb.name]
    silent = [names for action, names in flags_of(parser) if not (action.help or "").strip()]
    assert silent == []


def test_the_guide_knows_no_flag_that_is_not_there():
    guide = (ROOT / "docs" / "cli.md").read_text()
    known = {"--json", "--help"}
    for parser in subcommands(command()).values():
        known |= {flag for action, _ in flags_of(parser) for flag in action.option_strings}
    known |= {f"--{name}" for name in caffe_flags.GLOG_SWITCHES | caffe_flags.GLOG_VALUED}
    known |= {
        f"--{no}{name}" for tool in TOOLS.values() for name in tool.flags for no in ("", "no")
    }
    for flag in re.findall(r"(?<![\w-])--[a-z][a-z_-]+", guide):
        assert flag in known, f"docs/cli.md speaks of {flag}"


def test_wrong_use():
    with pytest.raises(SystemExit) as caught:
        main(["nothing"])
    assert caught.value.code == 2


def test_an_error_is_one_line(capsys, tmp_path):
    assert main(["show", str(tmp_path / "no.prototxt")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sparknet show: ")
    assert "no.prototxt" in err
    assert err.count("\n") == 1


def test_the_command_is_declared():
    assert 'sparknet = "sparknet.cli:main"' in (ROOT / "pyproject.toml").read_text()


def test_a_reader_that_goes_away(tmp_path):
    (tmp_path / "x.prototxt").write_text('layer { name: "x" type: "Silence" bottom: "y" }')
    command = f"{sys.executable} -m sparknet draw --plain {tmp_path}/x.prototxt | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("trian", "sparknet: VERB: 'trian' is none of {verbs}; did you mean 'train'?"),
        ("train --sover x", "sparknet train: there is no flag '--sover'; did you mean '--solver'?"),
        ("time -modle=x", "sparknet time: there is no flag '-modle'; did you mean '-model'?"),
        ("doctor now", "sparknet doctor: 'now' is one argument too many"),
        ("upgrade a", "sparknet upgrade: the following arguments are required: OUT"),
        (
            "completion fsh",
            "sparknet completion: shell: 'fsh' is none of bash, zsh, fish, tcsh, powershell; "
            "did you mean 'fish'?",
        ),
        (
            "predict --format jsn x",
            "sparknet predict: --format: 'jsn' is none of text, csv, json; did you mean 'json'?",
        ),
        (
            "convert mnist --taek 3 a b c",
            "sparknet convert mnist: there is no flag '--taek'; did you mean '--take'?",
        ),
    ],
)
def test_words_that_nobody_knows(words, said, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error == said.format(verbs=", ".join(verb.name for verb in VERBS))
    assert hint == f"hint: '{error.partition(': ')[0]} --help' says what it takes"
