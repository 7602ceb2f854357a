"""`sparknet run`: a program whose ``import caffe`` (``--opencv``: cv2.dnn) is sparknet's."""

from __future__ import annotations

import os
import runpy
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from importlib.util import find_spec

from sparknet.cli.verb import Verb
from sparknet.errors import MissingExtra


def _arguments(parser: ArgumentParser) -> None:
    parser.usage = "sparknet run [--opencv] SCRIPT.py [ARGUMENT ...] | … -m MODULE [ARGUMENT ...]"
    parser.add_argument(
        "--opencv", action="store_true", help="cv2.dnn reads Caffe's nets, also in OpenCV 5"
    )
    parser.add_argument(
        "-m", dest="module", nargs=REMAINDER, metavar="MODULE", help="a module, as python -m"
    )
    parser.add_argument("script", nargs=REMAINDER, metavar="SCRIPT", help="a script and arguments")


def _execute(chosen: Namespace) -> int:
    from sparknet.caffe import alias

    if not (chosen.module or chosen.script):
        return _refuse("give a script, or -m and a module")
    alias.install()
    if chosen.opencv:
        import sparknet.opencv

        try:
            sparknet.opencv.install()
        except MissingExtra as error:
            return _refuse(str(error))
    if chosen.module:
        return _run_module(chosen.module)
    return _run_script(chosen.script)


def _run_script(words: list[str]) -> int:
    script = words[0]
    if not os.path.exists(script):  # noqa: PTH110 - as Python does, also for what is no Path
        return _refuse(f"no such file: {script}")
    sys.argv = words
    _put_first(os.path.dirname(os.path.realpath(script)))  # noqa: PTH120
    runpy.run_path(script, run_name="__main__")
    return 0


def _run_module(words: list[str]) -> int:
    module = words[0]
    sys.argv = words
    _put_first(os.getcwd())  # noqa: PTH109
    try:
        exists = find_spec(module) is not None
    except ModuleNotFoundError:
        exists = False
    if not exists:
        return _refuse(f"no module named {module}")
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


def _put_first(folder: str) -> None:
    """Replace this command's folder in sys.path by the program's."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _refuse(reason: str) -> int:
    print(f"sparknet run: {reason}", file=sys.stderr)
    return 2


VERB = Verb(
    "run",
    "Run a Python program in which 'import caffe' is sparknet's embedded pycaffe.",
    _arguments,
    _execute,
    transparent=True,
)
