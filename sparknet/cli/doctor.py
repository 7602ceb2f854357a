"""`sparknet doctor`: reports what this machine has, and what is missing."""

from __future__ import annotations

import json
import platform
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sparknet.cli import flags
from sparknet.cli.verb import Verb, WrongUse

if TYPE_CHECKING:
    from sparknet.spark.cluster.executors import Executors

EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "hdf5": (("h5py",), "models, states and data in HDF5"),
    "images": (("pillow",), "image files, encoded databases"),
    "video": (("opencv-python-headless",), "videos and cameras; folders of frames need nothing"),
    "parquet": (("pyarrow",), "data in Parquet files"),
    "mlflow": (("mlflow",), "models and trainings in MLflow"),
    "onnx": (("onnx",), "ONNX models"),
    "text": (("tokenizers",), "columns of text on Spark"),
    "torch": (("torch", "cloudpickle"), "training of PyTorch's own modules"),
    "draw": (("pydot",), "pycaffe's draw module"),
    "plots": (("matplotlib",), "plots as PNG and PDF; SVG needs nothing"),
    "tensorboard": (("tensorboard",), "TensorBoard logs"),
    "completion": (("shtab",), "completion in shells"),
    "encryption": (("cryptography",), "encryption between workers"),
    "spark": (("pyspark", "pyarrow", "pandas"), "training and predicting on Spark"),
    "connect": (
        ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard"),
        "sessions of Spark Connect",
    ),
}
"""The packages and the purpose of each extra."""
MODULES = {
    "pillow": "PIL",
    "opencv-python-headless": "cv2",
    "scikit-learn": "sklearn",
    "grpcio": "grpc",
    "grpcio-status": "grpc_status",
    "googleapis-common-protos": "google.rpc",
}
"""The module of a package, where their names differ."""
PATIENCE = 60
"""Seconds that a cluster may take to answer."""


@dataclass(frozen=True)
class Finding:
    """The result of one check; a missing thing that is `needed` makes the exit status 1."""

    group: str
    name: str
    value: str
    found: bool = True
    needed: bool = False
    hint: str = ""


def _arguments(parser: ArgumentParser) -> None:
    flags.add_json(parser)
    parser.add_argument(
        "--master",
        metavar="URL",
        help="say what this cluster's executors have, too: spark://…, yarn, k8s://…, sc://…",
    )
    parser.add_argument(
        "--timeout",
        type=flags.positive,
        metavar="SECONDS",
        help=f"how long the cluster may take to answer (default: {PATIENCE})",
    )


def _execute(chosen: Namespace) -> int:
    if chosen.timeout and not chosen.master:
        raise WrongUse("--timeout is for a cluster", "give --master URL")
    findings = list(examine())
    if chosen.master:
        findings += cluster(chosen.master, chosen.timeout or PATIENCE)
    healthy = all(one.found for one in findings if one.needed)
    if chosen.json:
        print(json.dumps({"healthy": healthy, "findings": [*map(asdict, findings)]}, indent=1))
    else:
        print("\n".join(table(findings)))
    return 0 if healthy else 1


def examine() -> Iterator[Finding]:
    """Yields the findings about this machine."""
    yield from _python()
    yield from _engine()
    yield from _machine()
    yield from _spark()
    yield from _extras()


def cluster(master: str, seconds: float) -> Iterator[Finding]:
    """Yields the findings about a cluster's executors, and where they differ from this machine."""
    from sparknet.errors import SparkNetError
    from sparknet.spark.cluster import executors

    try:
        machines = executors.examine(master, seconds)
    except SparkNetError as error:
        yield Finding("executors", "master", str(error), False, True)
        return
    here = executors.driver()
    for there in machines:
        parts = [
            f"Python {there.python}",
            f"sparknet {there.sparknet or 'missing'}",
            there.instructions or "",
            f"{there.processors} processors",
            executors.gibibytes(there.memory) if there.memory else "",
            *there.gpus,
            _gpus_of_spark(there),
            f"ran {there.tasks} task{'s' * (there.tasks > 1)}",
        ]
        yield Finding("executors", there.host, ", ".join(filter(None, parts)))
        for sentence, stops in executors.differences(there, here):
            yield Finding("executors", there.host, sentence, False, stops)


def _gpus_of_spark(there: Executors) -> str:
    """Which GPUs Spark gives to tasks."""
    if there.addresses:
        return f"Spark gives tasks the GPUs {', '.join(there.addresses)}"
    return "which Spark gives to no task (spark.executor.resource.gpu.amount)" if there.gpus else ""


def table(findings: list[Finding]) -> Iterator[str]:
    """Yields groups of aligned lines, with a hint under each missing thing."""
    width = max(len(one.name) for one in findings)
    group = None
    for one in findings:
        if one.group != group:
            yield from ([] if group is None else [""])
            yield one.group
            group = one.group
        yield f"  {'ok' if one.found else '--'}  {one.name.ljust(width)}  {one.value}".rstrip()
        if one.hint and not one.found:
            yield f"      {' ' * width}  hint: {one.hint}"


def _python() -> Iterator[Finding]:
    from sparknet import __version__

    yield Finding("sparknet", "sparknet", __version__, needed=True)
    yield Finding("sparknet", "Python", platform.python_version(), needed=True)
    for package in ("numpy", "protobuf", "cffi"):
        version = _version(package)
        advice = f"pip install {package}"
        yield Finding("sparknet", package, version or "missing", bool(version), True, advice)


def _engine() -> Iterator[Finding]:
    from sparknet.errors import SparkNetError

    try:
        from sparknet import native
    except (SparkNetError, ImportError) as error:
        advice = "install sparknet again: 'pip install --force-reinstall sparknet'"
        yield Finding("engine", "native core", str(error), False, True, advice)
        return
    yield Finding("engine", "native core", native.version(), needed=True)
    onednn, isa = native.onednn(), native.onednn_isa()
    if onednn == "none":
        advice = "PyTorch computes nets here: pip install 'sparknet[torch]' (docs/install.md)"
        yield Finding("engine", "oneDNN", "none in this build", False, hint=advice)
    else:
        yield Finding("engine", "oneDNN", onednn)
        yield Finding("engine", "instructions", isa or "oneDNN does not say")
    yield Finding("engine", "threads", str(native.threads()))


def _machine() -> Iterator[Finding]:
    from sparknet.spark.cluster import executors
    from sparknet.spark.cluster.gpus import models

    yield Finding("machine", "system", f"{platform.system()} {platform.release()}")
    mine = f"{platform.machine()}, {executors.processors()} processors to run on"
    yield Finding("machine", "processor", mine)
    if memory := executors.memory():
        yield Finding("machine", "memory", executors.gibibytes(memory))
    if gpus := models():
        yield Finding("machine", "GPUs", ", ".join(gpus))
    dot = shutil.which("dot")
    advice = "install Graphviz: 'sparknet draw' needs it for SVG, PNG and PDF"
    yield Finding("machine", "Graphviz", "found" if dot else "missing", bool(dot), hint=advice)


def _spark() -> Iterator[Finding]:
    from sparknet.errors import SparkNetError
    from sparknet.spark.cluster.java import java_version

    try:
        yield Finding("Spark", "Java", java_version())
    except (SparkNetError, OSError) as error:
        advice = "install Java 17 or newer, or pip install 'sparknet[spark]', which brings one"
        yield Finding("Spark", "Java", f"cannot be used: {error}", False, hint=advice)


def _extras() -> Iterator[Finding]:
    for extra, (packages, purpose) in EXTRAS.items():
        versions = {package: _version(package) for package in packages}
        broken = {package: _failure(package) for package in packages if versions[package]}
        complete = all(versions.values()) and not any(broken.values())
        text = ", ".join(
            f"{package} {version or 'missing'}"
            + (f", which cannot be imported: {broken[package]}" if broken.get(package) else "")
            for package, version in versions.items()
        )
        advice = f"pip install 'sparknet[{extra}]'"
        if any(broken.values()):
            advice = "install versions that fit each other (docs/install.md)"
        yield Finding("extras", extra, f"{text} ({purpose})", complete, hint=advice)


def _failure(package: str) -> str:
    """Return the reason why an installed package cannot be imported; empty if it can be."""
    try:
        import_module(MODULES.get(package, package))
    except Exception as error:  # an extension for another numpy raises ValueError, AttributeError
        return str(error).strip().partition("\n")[0] or type(error).__name__
    return ""


def _version(package: str) -> str | None:
    """Return an installed package's version; if it is only on the path, its own __version__."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        # Spark's own folder on PYTHONPATH, or pyspark-client, which brings pyspark.
        spec = find_spec(package)
    return str(getattr(import_module(package), "__version__", "found")) if spec else None


VERB = Verb(
    "doctor",
    "Say what this machine has (versions, instructions, threads, Java, Spark, extras) and what is "
    "missing; exit status 1 where sparknet cannot work.",
    _arguments,
    _execute,
)
