"""Options for the JVMs of tests, which are many and live for seconds.

Without C2's compiler threads and G1's, and with Spark's classes mapped from a file that
`python -m tests.spark.java` makes, a session that trains once takes half the
time of the processors.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAIN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SESSION = """
from sparknet.spark import local_session, Trainer
from tests.spark.digits import pixels, solver

session = local_session(2, threads=1, memory="1g")
columns = {"data": "pixels", "label": "digit"}
Trainer(solver(steps=4), workers=2, columns=columns).fit(pixels(session, 40))
session.stop()
"""


def archive() -> Path | None:
    """The file of classes for this Spark on this Java; None where that is not on the PATH."""
    java, spark = shutil.which("java"), find_spec("pyspark")
    if java is None or spark is None:
        return None
    made_by = f"{Path(java).resolve()} {spark.origin} {version('pyspark')}"
    name = hashlib.sha256(made_by.encode()).hexdigest()[:16]
    return ROOT / "build" / "java" / f"{name}.jsa"


def quick() -> str:
    """The options; a file of classes that does not fit is ignored, without a word."""
    classes = archive()
    if classes is None or not classes.is_file():
        return PLAIN
    return f"{PLAIN} -XX:SharedArchiveFile={classes} -Xlog:disable -Xlog:all=error:stderr"


def start_quickly() -> None:
    """Tell spark-submit, which starts each driver's JVM, here and in processes to come."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", quick())


def main() -> None:
    """Make the file of classes, unless it is there or this Java cannot."""
    classes = archive()
    if classes is None or classes.is_file():
        return
    classes.parent.mkdir(parents=True, exist_ok=True)
    draft = classes.with_suffix(f".{os.getpid()}")
    options = f"{PLAIN} -XX:ArchiveClassesAtExit={draft}"
    subprocess.run(
        [sys.executable, "-c", SESSION],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_SUBMIT_OPTS": options},
        capture_output=True,
        check=False,
    )
    if draft.is_file():
        draft.rename(classes)


if __name__ == "__main__":
    main()
