"""`sparknet completion`: each shell reads its script, and completes by it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sparknet.cli import VERBS, main

pytest.importorskip("shtab")

BASH = """
source {script}
COMP_WORDS=({words}) COMP_CWORD={last}
_shtab_sparknet
echo "${{COMPREPLY[@]}}"
"""


def script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    assert main(["completion", shell]) == 0
    path = folder / f"completion.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


def output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


def test_bash(tmp_path, capsys):
    path = script("bash", tmp_path, capsys)
    for words, expected in {
        "sparknet d": "draw doctor device_query",
        "sparknet time --ph": "--phase",
        "sparknet time -phase t": "train test",
        "sparknet completion z": "zsh",
        "sparknet convert m": "mnist mean",
        "sparknet convert images --resi": "--resize",
        "sparknet show net.pro": "",
    }.items():
        text = BASH.format(script=path, words=words, last=len(words.split()) - 1)
        assert output("bash", "--norc", "-c", text).strip() == expected
    (tmp_path / "net.prototxt").touch()
    text = BASH.format(script=path, words=f"sparknet show {tmp_path}/ne", last=2)
    assert output("bash", "--norc", "-c", text).strip() in ("", f"{tmp_path}/net.prototxt")
    every = BASH.format(script=path, words="sparknet ''", last=1)
    assert output("bash", "-c", every).split() == [verb.name for verb in VERBS]


def test_zsh(tmp_path, capsys):
    output("zsh", "-n", str(script("zsh", tmp_path, capsys)))


def test_fish(tmp_path, capsys):
    path = script("fish", tmp_path, capsys)

    def completed(words: str) -> list[str]:
        lines = output("fish", "--no-config", "-c", f"source {path}; complete -C '{words}'")
        return [line.partition("\t")[0] for line in lines.splitlines()]

    assert completed("sparknet d") == ["device_query", "doctor", "draw"]
    assert completed("sparknet time --ph") == ["--phase"]
