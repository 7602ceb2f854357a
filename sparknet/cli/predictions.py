"""Predictions: a net's outputs for each input, as text, CSV or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from sparknet.errors import DataError, printable

if TYPE_CHECKING:
    from sparknet.cli.inputs import Inputs
    from sparknet.net import Net

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Class:
    """One of the best classes of an input."""

    number: int
    label: str | None
    score: float

    @property
    def name(self) -> str:
        return str(self.number) if self.label is None else self.label


@dataclass(frozen=True)
class PrintedOutput:
    """An output of the net for one input: its best classes, or all its values."""

    input: str
    output: str
    classes: tuple[Class, ...] | None
    values: Array


def predictions(
    net: Net,
    inputs: Inputs,
    wanted: Sequence[str] | None,
    top: int,
    labels: list[str] | None,
    known: Sequence[str] = (),
) -> Iterator[list[PrintedOutput]]:
    """Yield the answers for each input in turn; ``known`` names classes of as many values."""
    for names, batch in inputs:
        outputs = {
            output: values
            for output, values in net.forward(batch, wanted).items()
            if values.ndim and len(values) == len(names)
        }
        if not outputs:
            raise DataError("the net has no output for each input: name blobs by --outputs")
        for row, name in enumerate(names):
            answers = []
            for output, rows in outputs.items():
                values = rows[row]
                words = known if labels is None and len(known) == values.size else labels
                classes = _best(name, output, values, top, words)
                answers.append(PrintedOutput(name, output, classes, values))
            yield answers


def _best(
    name: str, output: str, values: Array, top: int, labels: Sequence[str] | None
) -> tuple[Class, ...] | None:
    """Return the classes with the highest scores; of equal ones the lower index comes first.

    A single value without a label is no class, but the answer of a regression.
    """
    if not top or (values.size == 1 and not labels):
        return None
    if max(values.shape, default=1) != values.size:
        shape = " x ".join(map(str, values.shape))
        raise DataError(f"'{output}' is {shape} for each input, no classes: --top 0 prints it")
    scores = values.ravel()
    if np.isnan(scores).any():
        raise DataError(f"'{output}' became nan for {name}, which is no score: --top 0 prints it")
    if labels is not None and len(labels) < scores.size:
        raise DataError(
            f"there are {len(labels)} labels for the {scores.size} classes of '{output}'"
        )
    order = np.argsort(-scores, kind="stable")[:top]
    return tuple(
        Class(int(number), labels[number] if labels else None, float(scores[number]))
        for number in order
    )


def _text(found: Iterator[list[PrintedOutput]]) -> Iterator[str]:
    for one in found:
        for answer in one:
            text = (
                ", ".join(f"{value:g}" for value in answer.values.ravel().tolist())
                if answer.classes is None
                else ", ".join(f"{best.name} {best.score:.4f}" for best in answer.classes)
            )
            output = f" {printable(answer.output)}" if len(one) > 1 else ""
            yield f"{answer.input}{output}: {text}"


def _json(found: Iterator[list[PrintedOutput]]) -> Iterator[str]:
    from sparknet.report.log import as_json

    for one in found:
        outputs = {answer.output: _plain(answer) for answer in one}
        yield as_json({"input": one[0].input, "outputs": outputs})


def _plain(answer: PrintedOutput) -> Any:
    if answer.classes is None:
        return answer.values.tolist()
    return [
        {"class": best.number}
        | ({} if best.label is None else {"label": best.label})
        | {"score": best.score}
        for best in answer.classes
    ]


def _csv(found: Iterator[list[PrintedOutput]]) -> Iterator[str]:
    """Yields a row for each class, or for each input and output if there are no classes."""
    for number, one in enumerate(found):
        for answer in one:
            if answer.classes is None:
                values = answer.values.ravel().tolist()
                if number == 0 and answer is one[0]:
                    yield _row("input", "output", *(f"value{at}" for at in range(len(values))))
                yield _row(answer.input, answer.output, *values)
                continue
            if number == 0 and answer is one[0]:
                yield _row("input", "output", "rank", "class", "label", "score")
            for rank, best in enumerate(answer.classes, 1):
                row = (rank, best.number, best.label or "", best.score)
                yield _row(answer.input, answer.output, *row)


def _row(*cells: Any) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


FORMATS: dict[str, Callable[[Iterator[list[PrintedOutput]]], Iterator[str]]] = {
    "text": _text,
    "csv": _csv,
    "json": _json,
}


@contextmanager
def open_output(path: str) -> Iterator[TextIO]:
    """Open a file that gets its name only when it is complete."""
    from sparknet.atomic_files import atomic_file

    with (
        atomic_file(path) as draft,
        draft.open("w", encoding="utf-8", errors="surrogateescape") as out,
    ):
        yield out
