"""Texts: a column of text as the numbers of tokens that a net takes.

The package tokenizers computes them in the Python workers, by the `tokenizer.json` that lies next
to a model of Hugging Face.  The file is not trusted: its size is checked, and each worker reads it
once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparknet.errors import FileError, LayerError, SparkError, SpecError, clean, extra
from sparknet.graph.records import Outline
from sparknet.net.entries import NetMessage
from sparknet.net.fed import FedNet
from sparknet.net.files import fetched
from sparknet.predict.output_columns import Array
from sparknet.predict.worker_cache import cached
from sparknet.proto import parse_net
from sparknet.proto.byte_source import read_file

if TYPE_CHECKING:
    import pyarrow as pa

Role = Literal["ids", "mask", "types", "places"]
_LARGEST = 1 << 28
_ENDLESS = 1 << 15
"""Tokens of which a net that takes as many takes any number."""
_ENOUGH = 1 << 10
"""Tokens with which a net's products are as fast as with more."""
_PADDING = 1 / 8
"""Of a batch with enough tokens, the most that may be padding, as a part of the others."""
_ROLES: tuple[tuple[str, Role], ...] = (("mask", "mask"), ("type", "types"), ("position", "places"))


@dataclass(frozen=True)
class Texts:
    """What makes the inputs of a net of a column of texts."""

    file: str
    """The tokenizer's file, as SparkFiles knows it."""
    roles: dict[str, Role]
    """Input → what it takes of a text."""
    length: int | None
    """The only number of tokens that the net takes; None: any."""
    longest: int | None
    """The most that it takes; None: any number."""
    content: bytes | None = field(default=None, repr=False)
    """The file's, unless ``find`` gives a path of it."""
    find: Callable[[str], Path] | None = None
    """Finds the file in a task, by its name."""

    def read(self, values: pa.Array, name: str) -> tuple[list[Any], dict[int, SparkError]]:
        """For each row its tokens, and the errors of rows that have none."""
        import pyarrow as pa

        types = (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
        if not any(fits(values.type) for fits in types):
            raise SparkError(
                f"column '{name}' is of type {values.type}, and a tokenizer takes text"
            )
        token_lists: list[Any] = [None] * len(values)
        errors: dict[int, SparkError] = {}
        texts = values.to_pylist()
        valid = [row for row, text in enumerate(texts) if text is not None]
        tokenizer = cached(("tokenizer", self.file), self._tokenizer)
        for row, tokens_of_row in zip(
            valid, _encoded(tokenizer, [texts[row] for row in valid]), strict=True
        ):
            token_lists[row] = tokens_of_row
        for row, tokens_of_row in enumerate(token_lists):
            if tokens_of_row is None:
                errors[row] = SparkError(
                    f"column '{name}' is null: fill such rows, or filter them out"
                )
            elif not len(tokens_of_row):
                errors[row] = SparkError(f"column '{name}' has a text without tokens")
            elif self.longest is not None and len(tokens_of_row) > self.longest:
                errors[row] = SparkError(
                    f"column '{name}' has a text of {len(tokens_of_row)} tokens, and the net takes "
                    f"{self.longest} at most: the tokenizer's file may say where texts are cut off"
                )
        return token_lists, errors

    def batches(self, lengths: Sequence[int], most: int) -> list[slice]:
        """Cut texts, the shortest first, into batches of ``most`` or of little padding."""
        slices, begin, tokens = list[slice](), 0, 0
        for at, length in enumerate(lengths):
            padding = (at + 1 - begin) * length - (tokens + length)
            wide = tokens >= _ENOUGH and padding > _PADDING * (tokens + length)
            if at - begin == most or (wide and self.length is None):
                slices.append(slice(begin, at))
                begin, tokens = at, 0
            tokens += length
        return [*slices, slice(begin, len(lengths))]

    def values(self, found: Sequence[Any]) -> dict[str, Array]:
        """Return the inputs for some texts, as long as the longest one."""
        tokenizer = cached(("tokenizer", self.file), self._tokenizer)
        length = self.length or max(map(len, found))
        pad, to_left = tokenizer.pads, tokenizer.pads_left
        fill: dict[Role, int] = {"ids": pad[0], "mask": 0, "types": pad[1], "places": 0}
        arrays = {
            name: np.full((len(found), length), fill[role], np.float32)
            for name, role in self.roles.items()
        }
        for row, one in enumerate(found):
            at = slice(length - len(one), length) if to_left else slice(0, len(one))
            for name, role in self.roles.items():
                arrays[name][row, at] = _OF[role](one)
        return arrays

    def _tokenizer(self) -> _Tokenizer:
        if self.find is None:
            return _Tokenizer(self.content or b"", self.file)
        path = self.find(self.file)
        text = read_file(path, _LARGEST)
        if _digest(text) != path.stem.rpartition("-")[2]:
            raise FileError(path, "is another tokenizer than the one that was sent")
        return _Tokenizer(text, str(path))


_OF: dict[Role, Any] = {
    "ids": lambda one: one.ids,
    "mask": lambda one: one.attention_mask,
    "types": lambda one: one.type_ids,
    "places": lambda one: range(len(one)),
}


class _Tokenizer:
    """A tokenizer that pads nothing: batches are padded to their own longest text."""

    def __init__(self, text: bytes, path: str) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # tasks share the cores already
        with extra("tokenizers", "text", "a column of text"):
            from tokenizers import Tokenizer
        try:
            self.made = Tokenizer.from_buffer(text)
            padding = self.made.padding or {}
            self.made.no_padding()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in Rust is no Exception
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise FileError(path, f"is no tokenizer: {clean(first)}") from None
        ids = int(padding.get("pad_id", 0)), int(padding.get("pad_type_id", 0))
        self.pads, self.pads_left = ids, padding.get("direction") == "left"


def _encoded(tokenizer: _Tokenizer, texts: list[str]) -> list[Any]:
    try:
        return list(tokenizer.made.encode_batch(texts))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SparkError(f"the tokenizer failed: {clean(first)}") from None


@dataclass(frozen=True)
class TokenizerFile:
    """A tokenizer's file, as it was read."""

    text: bytes = field(repr=False)
    path: str
    pads_left: bool = False

    @classmethod
    def read(cls, path: Any) -> TokenizerFile:
        """Return a file wherever Spark can read it."""
        if not isinstance(path, (str, os.PathLike)):
            raise SparkError(f"tokenizer is {path!r}: the path of a tokenizer.json is needed")
        with fetched(path) as file:
            text = read_file(file, _LARGEST)
        return cls(text, os.fspath(path), _Tokenizer(text, os.fspath(path)).pads_left)

    def ids(self, tested: FedNet) -> str:
        """Return the input that takes the numbers of tokens."""
        matches = [name for name, role in _roles(tested).items() if role == "ids"]
        if len(matches) != 1:
            names = [entry.name for entry in tested.entries]
            raise SparkError(
                "a tokenizer needs a net with one input of tokens, as 'input_ids': its inputs are "
                f"{names}"
            )
        return matches[0]

    def mask(self, tested: FedNet) -> str | None:
        """Return the input that says which tokens are none."""
        return next((name for name, role in _roles(tested).items() if role == "mask"), None)

    def check_pooling(self, kind: str) -> None:
        if kind == "cls" and self.pads_left:
            raise SpecError(
                "pooling='cls' takes the first token, and the tokenizer pads on the left: take "
                "another pooling"
            )

    def here(self, tested: FedNet) -> Texts:
        """Return what makes the net's inputs of texts in this process."""
        shapes = {entry.name: entry.shape for entry in tested.entries}
        odd = next((one for one, shape in shapes.items() if len(shape) != 2), None)
        if odd is not None:
            raise SparkError(
                f"a tokenizer makes rows of tokens, and input '{odd}' is {shapes[odd]}"
            )
        length, longest = _Lengths(tested, shapes).limits()
        name = f"sparknet-{_digest(self.text)}.tokenizer"
        return Texts(name, _roles(tested), length, longest, self.text)


def _roles(tested: FedNet) -> dict[str, Role]:
    return {
        entry.name: next((role for part, role in _ROLES if part in entry.name.lower()), "ids")
        for entry in tested.entries
    }


class _Lengths:
    """Which numbers of tokens a net takes, with the same weights."""

    def __init__(self, tested: FedNet, shapes: Mapping[str, Sequence[int]]) -> None:
        self._layers = Outline(tested.described.layer, tested.phase).layers
        self._shapes = shapes
        self._described = next(iter(shapes.values()))[1]
        self._params = self._planned(self._described)

    def limits(self) -> tuple[int | None, int | None]:
        """Return the only one, if there is one, and the largest."""
        if not self._fits(1) or not self._fits(2):
            return self._described, self._described
        if self._fits(_ENDLESS):
            return None, None
        low, high = max(self._described, 2), _ENDLESS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(middle) else (low, middle)
        return None, low

    def _fits(self, length: int) -> bool:
        return self._params is not None and self._planned(length) == self._params

    def _planned(self, length: int) -> list[Any] | None:
        blobs: dict[str, tuple[int, ...]] = {
            name: (shape[0], length) for name, shape in self._shapes.items()
        }
        params: list[Any] = []
        try:
            for layer in self._layers:
                plan = layer.plan([blobs[one] for one in layer.parameter.bottom])
                params += [param.shape for param in plan.params]
                blobs.update(zip(layer.parameter.top, plan.tops, strict=False))
        except (KeyError, LayerError):
            return None
        return params


def _digest(text: bytes) -> str:
    return blake2b(text, digest_size=16).hexdigest()


POOLED, NORMALIZED = "pooled", "normalized"
EMBEDDINGS = (POOLED, NORMALIZED)
KINDS = ("mean", "cls", "max")
_USUAL = ("last_hidden_state", "token_embeddings", "hidden_states")
_AXES = 3

_MEAN = """
layer {{ name: "pooled_rows" type: "Reshape" bottom: "{mask}" top: "pooled_rows"
  reshape_param {{ shape {{ dim: 0 dim: 1 dim: -1 }} }} }}
layer {{ name: "pooled_sums" type: "MatMul" bottom: "pooled_rows" bottom: "{of}"
  top: "pooled_sums" }}
layer {{ name: "pooled_sum" type: "Reshape" bottom: "pooled_sums" top: "pooled_sum"
  reshape_param {{ shape {{ dim: 0 dim: -1 }} }} }}
layer {{ name: "pooled_count" type: "Reduction" bottom: "{mask}" top: "pooled_count"
  reduction_param {{ axis: 1 }} }}
layer {{ name: "pooled_some" type: "Clip" bottom: "pooled_count" top: "pooled_some"
  clip_param {{ min: 1e-9 max: 1e30 }} }}
layer {{ name: "pooled_share" type: "Power" bottom: "pooled_some" top: "pooled_share"
  power_param {{ power: -1 }} }}
layer {{ name: "pooled" type: "Scale" bottom: "pooled_sum" bottom: "pooled_share" top: "pooled"
  scale_param {{ axis: 0 }} }}
"""
_MAX = """
layer {{ name: "pooled_hidden" type: "Power" bottom: "{mask}" top: "pooled_hidden"
  power_param {{ scale: 1e9 shift: -1e9 }} }}
layer {{ name: "pooled_seen" type: "Bias" bottom: "{of}" bottom: "pooled_hidden" top: "pooled_seen"
  bias_param {{ axis: 0 }} }}
layer {{ name: "pooled_most" type: "ArgMax" bottom: "pooled_seen" top: "pooled_most"
  argmax_param {{ axis: 1 out_max_val: true }} }}
layer {{ name: "pooled" type: "Reshape" bottom: "pooled_most" top: "pooled"
  reshape_param {{ shape {{ dim: 0 dim: -1 }} }} }}
"""
_CLS = """
layer {{ name: "pooled_first" type: "Gather" bottom: "{of}" top: "pooled_first"
  gather_param {{ axis: 1 index: 0 }} }}
layer {{ name: "pooled" type: "Reshape" bottom: "pooled_first" top: "pooled"
  reshape_param {{ shape {{ dim: 0 dim: -1 }} }} }}
"""
_NORM = """
layer {{ name: "pooled_square" type: "Reduction" bottom: "pooled" top: "pooled_square"
  reduction_param {{ axis: 1 operation: SUMSQ }} }}
layer {{ name: "pooled_least" type: "Clip" bottom: "pooled_square" top: "pooled_least"
  clip_param {{ min: 1e-24 max: 1e30 }} }}
layer {{ name: "pooled_factor" type: "Power" bottom: "pooled_least" top: "pooled_factor"
  power_param {{ power: -0.5 }} }}
layer {{ name: "normalized" type: "Scale" bottom: "pooled" bottom: "pooled_factor" top: "normalized"
  scale_param {{ axis: 0 }} }}
"""


def pooled(tested: FedNet, kind: str, of: str | None, mask: str | None) -> NetMessage:
    """Return the net with `pooled`, one vector for each text, and `normalized`, of length 1.

    ``of`` is the blob of texts x tokens x numbers; ``mask`` is the input that says which tokens
    are none.
    """
    if kind not in KINDS:
        raise SpecError(f"pooling is {kind!r}: one of {', '.join(KINDS)} is needed")
    shapes, _ = tested.layout()
    names = set(EMBEDDINGS).intersection(shapes)
    if names:
        raise SpecError(f"the net has a blob '{min(names)}' already: leave pooling out")
    if of is None:
        outputs = [*_USUAL, *tested.net.outputs]
        fitting = [one for one in outputs if len(shapes.get(one, ())) == _AXES]
        if not fitting:
            raise SpecError(
                "pooling needs a blob of texts x tokens x numbers, and no output is one: name one "
                "with pooled="
            )
        of = fitting[0]
    elif len(shapes.get(of, ())) != _AXES:
        raise SpecError(f"pooled is {of!r}: no blob of texts x tokens x numbers")
    if mask is None and kind != "cls":
        raise SpecError(f"pooling='{kind}' needs an input that is a mask, as 'attention_mask'")
    text = {"mean": _MEAN, "cls": _CLS, "max": _MAX}[kind] + _NORM
    net = NetMessage()
    net.CopyFrom(tested.described)
    net.layer.extend(parse_net(text.format(of=of, mask=mask)).layer)
    return net
