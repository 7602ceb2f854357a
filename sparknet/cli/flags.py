"""Flags as in Caffe: with one dash or two, ``-flag value`` or ``-flag=value``."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any

from sparknet.cli.verb import WrongUse


def add(parser: ArgumentParser, name: str, *others: str, **options: Any) -> None:
    """Add a flag of the `caffe` tool, spelt with dashes too, and ``others`` for the same."""
    names = dict.fromkeys((f"-{name}", f"--{name}", f"--{name.replace('_', '-')}", *others))
    parser.add_argument(*names, **options)


def add_state(parser: ArgumentParser) -> None:
    """Add the flags -level, -stage and --dialect: which net a file describes."""
    add(parser, "level", type=int, default=0, help="the level that the net is built for")
    add(
        parser,
        "stage",
        action="append",
        default=[],
        metavar="NAME[,NAME]",
        help="stages to include; can be repeated",
    )
    parser.add_argument(
        "--dialect",
        metavar="FORK",
        help="the fork of Caffe that the net is written for, where forks disagree about a layer: "
        "segnet, pspnet, hed …",
    )


def add_trust(parser: ArgumentParser) -> None:
    """Add the flags --trusted and --untrusted."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--untrusted",
        dest="trusted",
        action="store_false",
        help="let no layer import a module, or read or write a file (default for the net of a "
        ".caffemodel)",
    )
    group.add_argument(
        "--trusted",
        action="store_true",
        help="let the net of a .caffemodel import Python layers, and read and write files",
    )
    parser.set_defaults(trusted=None)


def stages(chosen: Namespace) -> tuple[str, ...]:
    """Return the stages in ``-stage a -stage b`` or by ``-stage a,b``."""
    return tuple(name for text in chosen.stage for name in text.split(",") if name)


def add_threads(parser: ArgumentParser) -> None:
    add(
        parser,
        "threads",
        type=positive,
        metavar="N",
        help="the number of threads (default: OMP_NUM_THREADS, or all cores)",
    )


def use_threads(chosen: Namespace) -> None:
    """Set the number of threads to that of -threads, also PyTorch's where it is the engine."""
    from sparknet.devices import need_torch, resolve_device
    from sparknet.native import set_threads

    if chosen.threads:
        set_threads(chosen.threads)
        if resolve_device(getattr(chosen, "device", None)) is not None:
            need_torch().set_num_threads(chosen.threads)


def add_precision(parser: ArgumentParser, training: bool = False) -> None:
    add(
        parser,
        "precision",
        choices=("float32", "bf16") if training else ("float32", "bf16", "int8"),
        default="float32",
        help="the precision of multiplications (default: float32)",
    )


def add_gpu(parser: ArgumentParser) -> None:
    """Add the flag -gpu: the GPU that PyTorch computes on, or a warning that there is none."""
    add(
        parser,
        "gpu",
        action=_Gpu,
        metavar="ID[,ID]",
        help="the GPU to compute on, with PyTorch (docs/gpu.md)",
    )


def add_outputs(parser: ArgumentParser, help: str) -> None:
    """Add --outputs, the blobs that are wanted, which Caffe's tools call blobs."""
    names = ("--outputs", "-outputs", "--blobs", "-blobs")
    parser.add_argument(*names, metavar="BLOB[,BLOB]", help=help)


def add_json(parser: ArgumentParser, help: str = "print JSON") -> None:
    parser.add_argument("--json", action="store_true", help=help)


class _Gpu(Action):
    """Chooses a GPU, or prints one warning, as set_mode_gpu does."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        from sparknet.devices import take_gpu

        if values and not getattr(namespace, "gpu", None):
            first, *others = str(values).split(",")
            number = int(first) if first.isdecimal() else 0
            messages = [f"Caffe would take {len(others) + 1} batches a step"] if others else []
            if reason := take_gpu(number):
                messages.insert(0, reason)
            if messages:
                line = f"{parser.prog}: warning: {option_string} {values}: {'; '.join(messages)}"
                print(line, file=sys.stderr)
        namespace.gpu = values


def positive(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise ArgumentTypeError(f"'{text}' is no positive number")
    return int(text)


def count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is no count")
    return int(text)


def size(text: str) -> tuple[int, int]:
    """Return a height and a width, or one number for both."""
    height, cross, width = text.partition("x")
    width = width if cross else height
    sizes = [int(part) if part.isdecimal() else 0 for part in (height, width)]
    if not all(0 < one < 1 << 16 for one in sizes):
        raise ArgumentTypeError(f"'{text}' is no HEIGHTxWIDTH and no number")
    return sizes[0], sizes[1]


def needed(chosen: Namespace, *names: str) -> None:
    """WrongUse if one of these flags is missing."""
    for name in names:
        if not getattr(chosen, name):
            raise WrongUse(f"give --{name}")


class Noted(Action):
    """A flag about which a line is printed; its value is kept if it has a ``dest``."""

    def __init__(self, note: str, **options: Any) -> None:
        super().__init__(**{**options, "default": SUPPRESS, "help": SUPPRESS})
        self._note = note

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        print(f"{parser.prog}: {option_string} {self._note}", file=sys.stderr)
        if self.dest != SUPPRESS:
            setattr(namespace, self.dest, values)


def add_old(parser: ArgumentParser, old: str, new: str, **options: Any) -> None:
    """Add a flag's old name, which works for a version."""
    dest, note = new.lstrip("-").replace("-", "_"), f"is called {new} now"
    parser.add_argument(old, action=Noted, note=note, dest=dest, **options)
