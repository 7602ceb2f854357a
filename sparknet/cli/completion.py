"""`sparknet completion`: prints scripts by which shells complete verbs, flags and values."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from typing import Any

from sparknet.cli.verb import Verb
from sparknet.errors import extra

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)
    parser.epilog = (
        "bash: source <(sparknet completion bash). "
        "zsh: sparknet completion zsh > a folder of $fpath/_sparknet. "
        "fish: sparknet completion fish > ~/.config/fish/completions/sparknet.fish."
    )


def _execute(chosen: Namespace) -> int:
    with extra("shtab", "completion", "completion in shells"):
        import shtab
    parser = chosen.command()
    _complete_files(parser, shtab.FILE)
    print(shtab.complete(parser, chosen.shell))
    return 0


def _complete_files(parser: ArgumentParser, files: Any) -> None:
    """Let arguments without choices be completed by the names of files."""
    for action in parser._actions:
        if action.nargs != 0 and action.choices is None:
            action.complete = files  # type: ignore[attr-defined]
    for kind in subcommands(parser).values():
        _complete_files(kind, files)


def subcommands(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """Return the verbs of a command, or the kinds of a verb."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            return dict(action.choices)
    return {}


def flags_of(parser: ArgumentParser) -> Iterator[tuple[Action, list[str]]]:
    """Yield the flags of a verb and its kinds, spelled with two dashes where possible."""
    flags: set[str] = set()
    for action in parser._actions:
        if action.option_strings and action.help != SUPPRESS:
            long = [name for name in action.option_strings if name.startswith("--")]
            yield action, long or list(action.option_strings)
        flags.update(action.option_strings)
    for kind in subcommands(parser).values():
        for action, names in flags_of(kind):
            if not flags.intersection(names):
                flags.update(names)
                yield action, names


VERB = Verb(
    "completion",
    "Print a script by which a shell completes this command.",
    _arguments,
    _execute,
)
