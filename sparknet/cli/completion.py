"""`sparknet completion`: prints scripts by which shells complete verbs, flags and values."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterator
from shlex import quote

from sparknet.cli.verb import Verb

Verbs = dict[str, ArgumentParser]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SHELLS))
    parser.epilog = (
        "bash: source <(sparknet completion bash). "
        "zsh: sparknet completion zsh > a folder of $fpath/_sparknet. "
        "fish: sparknet completion fish > ~/.config/fish/completions/sparknet.fish."
    )


def _execute(chosen: Namespace) -> int:
    print("\n".join(SHELLS[chosen.shell](subcommands(chosen.command()))))
    return 0


def subcommands(parser: ArgumentParser) -> Verbs:
    """The verbs of a command, or the kinds of a verb."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            return dict(action.choices)
    return {}


def flags_of(parser: ArgumentParser) -> Iterator[tuple[Action, list[str]]]:
    """The flags of a verb and its kinds, spelled with two dashes where possible."""
    for action in parser._actions:
        if action.option_strings and action.help != SUPPRESS:
            long = [name for name in action.option_strings if name.startswith("--")]
            yield action, long or list(action.option_strings)
    seen = {flag for action in parser._actions for flag in action.option_strings}
    for kind in subcommands(parser).values():
        for action, names in flags_of(kind):
            if not seen.intersection(names):
                seen.update(names)
                yield action, names


def help_of(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


def _values(parser: ArgumentParser) -> tuple[str, ...]:
    """The choices of a verb's first word, if it has any."""
    for action in parser._actions:
        if not action.option_strings and action.choices:
            return tuple(map(str, action.choices))
    return ()


def _bash(verbs: Verbs) -> Iterator[str]:
    """Complete flags after a dash, else choices if there are any, else files."""
    yield "_sparknet() {"
    yield '    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words=""'
    yield '    case "$COMP_CWORD $verb ${COMP_WORDS[COMP_CWORD-1]} $word" in'
    yield f'    1\\ *) words="{" ".join(verbs)} --help --version" ;;'
    for name, parser in verbs.items():
        for action, _ in flags_of(parser):
            if action.choices:
                cases = "|".join(f"*\\ {name}\\ {flag}\\ *" for flag in action.option_strings)
                yield f'    {cases}) words="{" ".join(map(str, action.choices))}" ;;'
    for name, parser in verbs.items():
        flags = [flag for _, long in flags_of(parser) for flag in long]
        yield f'    *\\ {name}\\ *\\ -*) words="{" ".join(flags)}" ;;'
        if values := _values(parser):
            yield f'    2\\ {name}\\ *) words="{" ".join(values)}" ;;'
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o bashdefault -o default -F _sparknet sparknet"


def _zsh(verbs: Verbs) -> Iterator[str]:
    yield "#compdef sparknet"
    yield "_sparknet() {"
    yield "    local -a verbs"
    yield "    verbs=("
    for name, parser in verbs.items():
        yield f"        {quote(f'{name}:{_zsh_text(parser.description)}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then"
    yield "        _describe verb verbs"
    yield "        return"
    yield "    fi"
    yield "    local verb=$words[2]"
    yield "    shift words"
    yield "    (( CURRENT-- ))"
    yield "    case $verb in"
    for name, parser in verbs.items():
        yield f"    {name})"
        yield f"        _arguments {' '.join(_zsh_specs(parser))} ;;"
    yield "    esac"
    yield "}"
    yield 'if [ "$funcstack[1]" = _sparknet ]; then'
    yield '    _sparknet "$@"'
    yield "else"
    yield "    compdef _sparknet sparknet"
    yield "fi"


def _zsh_specs(parser: ArgumentParser) -> Iterator[str]:
    for action, long in flags_of(parser):
        takes = ""
        if action.nargs != 0:
            takes = (
                f":{action.dest}:({' '.join(map(str, action.choices))})"
                if action.choices
                else (f":{action.dest}:_files")
            )
        for flag in long:
            yield quote(f"{flag}[{_zsh_text(action.help)}]{takes}")
    values = _values(parser)
    yield quote(f"1:word:({' '.join(values)})") if values else ""
    yield quote("*:file:_files")


def _zsh_text(text: str | None) -> str:
    return help_of(text).translate(str.maketrans("[]:\\", "(),/"))


def _fish(verbs: Verbs) -> Iterator[str]:
    yield f"complete -c sparknet -n __fish_use_subcommand -f -a {quote(' '.join(verbs))}"
    for name, parser in verbs.items():
        about = quote(help_of(parser.description))
        yield f"complete -c sparknet -n __fish_use_subcommand -f -a {name} -d {about}"
        when = f"complete -c sparknet -n '__fish_seen_subcommand_from {name}'"
        if values := _values(parser):
            yield f"{when} -a {quote(' '.join(values))}"
        for action, long in flags_of(parser):
            choices = (
                f" -x -a {quote(' '.join(map(str, action.choices)))}" if action.choices else " -r"
            )
            takes = "" if action.nargs == 0 else choices
            for flag in (flag for flag in long if flag.startswith("--")):
                yield f"{when} -l {flag[2:]}{takes} -d {quote(help_of(action.help))}"


SHELLS: dict[str, Callable[[Verbs], Iterator[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}

VERB = Verb(
    "completion",
    "Print a script by which bash, zsh or fish completes this command.",
    _arguments,
    _execute,
)
