"""`sparknet models`: lists the model zoo, writes a model's files, fetches published weights."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from sparknet.cli.verb import Verb, WrongUse


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a model; all are listed without")
    parser.add_argument(
        "--out", metavar="DIR", help="write net.prototxt, solver.prototxt and README.md there"
    )
    parser.add_argument(
        "--weights",
        action="store_true",
        help="fetch the prototxt and caffemodel of a published model, or list these models",
    )
    parser.add_argument(
        "--mirror", metavar="URL", help="with --weights: a folder that is asked first"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")


def _execute(chosen: Namespace) -> int:
    if chosen.mirror and not chosen.weights:
        raise WrongUse("--mirror goes with --weights")
    if chosen.weights:
        return _weights(chosen)
    if chosen.name is None:
        if chosen.out is not None:
            raise WrongUse("--out needs the name of a model", "'sparknet models' lists the names")
        print("\n".join(_table()))
        return 0
    from sparknet.models import files

    folder = Path(chosen.out or chosen.name)
    texts = files(chosen.name, folder)
    if chosen.out is None:
        print(texts["README.md"], end="")
    else:
        _write(folder, texts, chosen.overwrite)
    return 0


def _weights(chosen: Namespace) -> int:
    """Print the names of a model's files, which are fetched once."""
    from sparknet.models import downloads

    if chosen.name is None:
        print("\n".join(downloads.table()))
        return 0
    for path in downloads.weights(chosen.name, chosen.mirror).values():
        print(path)
    return 0


def _table() -> Iterator[str]:
    """Yields a line for each model: name, parameters, training input, description."""
    from sparknet.models import NAMES, about, net

    yield f"{'name':<14} {'parameters':>11}  {'input':<19}  what it is"
    for name in NAMES:
        graph = net(name).graph()
        shape = " x ".join(map(str, graph.blobs["data"]))
        yield f"{name:<14} {graph.param_count:>11,}  {shape:<19}  {about(name)}"


def _write(folder: Path, texts: dict[str, str], overwrite: bool) -> None:
    from sparknet.errors import FileError

    for path in (folder / name for name in texts):
        if path.exists() and not overwrite:
            raise FileError(path, "exists already; --overwrite replaces it")
    if folder.exists() and not folder.is_dir():
        raise FileError(folder, "is a file; --out names a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            print(folder / name)
    except OSError as error:
        raise FileError(error.filename or folder, error.strerror or str(error)) from error


VERB = Verb(
    "models",
    "List the model zoo; with NAME and --out, write one model's net, solver and README; with "
    "--weights, fetch a published model.",
    _arguments,
    _execute,
)
