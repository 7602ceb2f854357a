"""Parser: argparse's parser, with errors as one line and a hint."""

from __future__ import annotations

from argparse import PARSER, REMAINDER, Action, ArgumentError, ArgumentParser
from collections.abc import Iterable
from typing import Any, NoReturn


class Parser(ArgumentParser):
    """Names the verb with the error, and suggests similar words."""

    def __init__(self, *words: Any, **options: Any) -> None:
        """No flag can be shortened: --metri may be --metric or --metrics."""
        super().__init__(*words, **{"allow_abbrev": False, **options})
        self._within = False

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nhint: '{self.prog} --help' says what it takes\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse unknown words here, because the main parser's error would not name the verb.

        Words without a flag may stand anywhere: NET -weights FILE INPUT.
        """
        if self._within:
            return super().parse_known_args(args, namespace)
        if any(action.nargs in (PARSER, REMAINDER) for action in self._actions):
            chosen, left = super().parse_known_args(args, namespace)
        else:
            self._within = True
            chosen, left = self.parse_known_intermixed_args(args, namespace)
        if left:
            self._refuse(left[0])
        return chosen, left

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"'{word}' is one argument too many")
        flag = word.partition("=")[0]
        known = [name for action in self._actions for name in action.option_strings]
        self.error(f"there is no flag '{flag}'{_near(flag, known)}")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(name) for name in action.choices]
        what = [*action.option_strings, str(action.metavar or action.dest)][0]
        near = _near(str(value), names)
        raise ArgumentError(None, f"{what}: '{value}' is none of {', '.join(names)}{near}")


def _near(word: str, known: Iterable[str]) -> str:
    from sparknet.proto.suggest import did_you_mean  # imports protobuf, which --help does not need

    return did_you_mean(word, known)
