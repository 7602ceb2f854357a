"""`sparknet completion`: each shell reads its script, and completes by it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sparknet.cli import VERBS, main

BASH = """
source {script}
COMP_WORDS=({words}) COMP_CWORD={last}
_sparknet
echo "${{COMPREPLY[@]}}"
"""


def script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    assert main(["completion", shell]) == 0
    path = folder / f"completion.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


def said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sparknet d", "draw doctor device_query"),
        ("sparknet time --ph", "--phase"),
        ("sparknet time -phase t", "train test"),
        ("sparknet completion z", "zsh"),
        ("sparknet convert m", "mnist mean"),
        ("sparknet convert images --resi", "--resize"),
        ("sparknet show net.pro", ""),
    ],
)
def test_bash(
    words: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script("bash", tmp_path, capsys)
    text = BASH.format(script=path, words=words, last=len(words.split()) - 1)
    assert said("bash", "--norc", "-c", text).strip() == expected


def test_bash_knows_every_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script("bash", tmp_path, capsys)
    found = said("bash", "-c", BASH.format(script=path, words="sparknet ''", last=1)).split()
    assert found == [*(verb.name for verb in VERBS), "--help", "--version"]


def test_zsh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script("zsh", tmp_path, capsys)
    said("zsh", "-n", str(path))
    load = f"autoload -Uz compinit; compinit -u -d {tmp_path}/dump; source {path}"
    assert said("zsh", "-fc", f"{load}; echo $_comps[sparknet]") == "_sparknet\n"


def test_zsh_is_told_which_words_a_flag_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    text = capsys.readouterr().out
    time = text[text.index("    time)") :].partition(";;")[0]
    assert re.search(r"-phase\[[^]]*\]:phase:\(train test\)", time)
    assert re.search(r"-weights\[[^]]*\]:weights:_files", time)


def test_fish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script("fish", tmp_path, capsys)

    def completed(words: str) -> list[str]:
        lines = said("fish", "--no-config", "-c", f"source {path}; complete -C '{words}'")
        return [line.partition("\t")[0] for line in lines.splitlines()]

    assert completed("sparknet d") == ["doctor", "draw"]
    assert completed("sparknet time --ph") == ["--phase"]
    assert completed("sparknet time --phase t") == ["test", "train"]
