"""Changes of C and C++ code, all in one library: each behind `sn_mutated(number) ? changed : was`.

A change is made of tokens: within the shortest piece of an expression that commas,
brackets, assignments and semicolons bound, one token is another.  What does not compile is dropped.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.site import Site, draw

CC, CXX = os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")
TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>(?:0[xX][\da-fA-F.]+(?:[pP][+-]?\d+)?|\.?\d[\d.]*(?:[eE][+-]?\d+)?)[uUlLfF]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<mark>->|\+\+|--|<<=|>>=|<<|>>|[-+*/%&|^!=<>]=|&&|\|\||::|\.\.\.|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPUTED = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}
ASSIGNED = {"+=": "-=", "-=": "+=", "*=": "+=", "/=": "*="}
JOINED = {"&&": "||", "||": "&&"}
WORDS = {"true": "false", "false": "true", "min": "max", "max": "min"}
ENDS = {",", ";", "=", "return", "?", ":", "{", "}", *ASSIGNED, "|=", "&=", "^=", "<<=", ">>="}
NOT_RUN = {"static_assert", "constexpr", "template", "using", "typedef", "enum", "case", "default"}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
HEADER = """\
#ifndef SN_MUTANTS_H
#define SN_MUTANTS_H
#ifdef __cplusplus
extern "C" {
#endif
extern int sn_mutant;
extern unsigned char sn_reached[];
void sn_reach(int number);
#ifdef __cplusplus
}
#endif
static inline int sn_mutated(int number) {
    if (!sn_reached[number]) sn_reach(number);
    return sn_mutant == number;
}
#endif
"""
NOTES = """\
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define SHOWN __attribute__((visibility("default")))
SHOWN int sn_mutant;
SHOWN unsigned char sn_reached[4096];
SHOWN void sn_forget_reached(void);
void sn_forget_reached(void) {
    memset(sn_reached, 0, sizeof sn_reached);
}
void sn_reach(int number);
void sn_reach(int number) {
    sn_reached[number] = 1;
    const char* path = getenv("SPARKNET_REACHED");
    if (path == NULL) return;
    char line[16];
    const int length = snprintf(line, sizeof line, "%d\\n", number);
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (file < 0) return;
    if (write(file, line, (size_t)length) < 0) abort();
    close(file);
}
__attribute__((constructor)) static void wake(void) {
    const char* number = getenv("SPARKNET_MUTANT");
    sn_mutant = number == NULL ? 0 : atoi(number);
}
"""


class Token(NamedTuple):
    text: str
    kind: str
    begin: int
    end: int


class Edit(NamedTuple):
    begin: int
    end: int
    before: str
    """The code as it is, which stands in the edit as {}."""
    after: str
    is_statement: bool = False

    def code(self, number: int) -> str:
        if self.is_statement:
            return f"{{ if (!sn_mutated({number})) {self.before} }}"
        return f"(sn_mutated({number}) ? ({self.after}) : ({self.before}))"


def tokens(source: str) -> list[Token]:
    return [
        Token(found.group(), str(found.lastgroup), found.start(), found.end())
        for found in TOKEN.finditer(source)
        if found.lastgroup != "skip"
    ]


def edits(source: str) -> Iterator[tuple[str, Edit]]:
    """Kind and edit, in the source's order."""
    code = tokens(source)
    inside = _in_functions(code)
    for at, token in enumerate(code):
        if not inside[at]:
            continue
        if (kind_and_text := _replaced(source, code, at)) is not None:
            kind, text = kind_and_text
            first, last = _piece(code, at)
            begin, end = code[first].begin, code[last].end
            before = source[begin:end]
            after = source[begin : token.begin] + text + source[token.end : end]
            yield kind, Edit(begin, end, before, after)
        if token.text in ("if", "while") and code[at + 1].text == "(":
            close = _match(code, at + 1)
            begin, end = code[at + 2].begin, code[close - 1].end
            yield "condition", Edit(begin, end, source[begin:end], f"!({source[begin:end]})")
        if token.kind == "name" and code[at - 1].text in (";", "{", "}", ")", "else"):
            yield from _statement(source, code, at)


def _replaced(source: str, code: list[Token], at: int) -> tuple[str, str] | None:
    token = code[at]
    spaced = source[token.begin - 1].isspace() and source[token.end : token.end + 1].isspace()
    if token.kind == "number":
        if token.text.lower().startswith("0x"):
            return None
        return "constant", f"({token.text} + 1)"
    if token.text in ("true", "false"):
        return "constant", WORDS[token.text]
    if token.text in ("min", "max") and code[at - 1].text == "::" and code[at + 1].text in "(<":
        return "arithmetic", WORDS[token.text]
    if token.kind != "mark" or not spaced:
        return None
    for kind, table in (
        ("comparison", COMPARED),
        ("arithmetic", COMPUTED),
        ("arithmetic", ASSIGNED),
        ("boolean", JOINED),
    ):
        if token.text in table:
            return kind, table[token.text]
    return None


def _statement(source: str, code: list[Token], at: int) -> Iterator[tuple[str, Edit]]:
    """A call or an assignment that can be left out."""
    words = {"return", "if", "for", "while", "else", "do", "switch", "case", "default", "const"}
    words |= {"static", "using", "public", "private", "break", "continue", "auto", "goto"}
    if code[at].text in words or code[at + 1].text not in (
        "(",
        ".",
        "->",
        "[",
        "=",
        "::",
        *ASSIGNED,
    ):
        return
    last = at
    while code[last].text != ";":
        if code[last].text in OPEN:
            last = _match(code, last)
        last += 1
        if last >= len(code) or code[last].text in CLOSE:
            return
    begin, end = code[at].begin, code[last].end
    yield "removed statement", Edit(begin, end, source[begin:end], ";", True)


def _piece(code: list[Token], at: int) -> tuple[int, int]:
    """The first and last token of the shortest whole expression around one."""
    is_assignment = code[at].text in ASSIGNED
    ends = {",", ";", "{", "}"} if is_assignment else ENDS
    if code[at].text not in JOINED:
        ends = ends | set(JOINED)
    first = last = at
    while code[first - 1].text not in ends and code[first - 1].text not in OPEN:
        first -= 1
        if code[first].text in CLOSE:
            first = _match_back(code, first)
    while first < at and code[first].text in ("else", "do", "if", "for", "while"):
        # A statement's head.
        first = _match(code, first + 1) + 1 if code[first + 1].text == "(" else first + 1
    while code[last + 1].text not in (ends - {"{"}) and code[last + 1].text not in CLOSE:
        last += 1
        if code[last].text in OPEN:
            last = _match(code, last)
    return first, last


def _match(code: list[Token], at: int) -> int:
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place].text in OPEN) - (code[place].text in CLOSE)
        if depth == 0:
            return place
    return len(code) - 1


def _match_back(code: list[Token], at: int) -> int:
    depth = 0
    for place in range(at, -1, -1):
        depth += (code[place].text in CLOSE) - (code[place].text in OPEN)
        if depth == 0:
            return place
    return 0


def _in_functions(code: list[Token]) -> list[bool]:
    """Whether each token is run: in a function's braces, and in no statement of `NOT_RUN`."""
    bodies: list[bool] = []
    found, skipping = [], False
    for at, token in enumerate(code):
        if token.text in NOT_RUN and token.kind == "name":
            skipping = True
        if token.text == "{":
            before = code[at - 1].text if at else ""
            bodies.append(before in (")", "const", "override", "noexcept", "else", "do", "try"))
            skipping = False
        if token.text == "}" and bodies:
            bodies.pop()
        if token.text in (";", "}", ":"):
            skipping = False
        found.append(any(bodies) and not skipping and at + 1 < len(code))
    return found


def sites(path: str, source: str) -> list[Site]:
    """Every change that `mutated` can make of a source, if it compiles."""
    return [
        Site(
            path,
            source.count("\n", 0, edit.begin) + 1,
            ordinal,
            kind,
            " ".join(edit.before.split())[:90],
            " ".join(edit.after.split())[:90],
        )
        for ordinal, (kind, edit) in enumerate(edits(source))
    ]


def mutated(source: str, numbers: dict[int, int]) -> str:
    """The source with some of its changes, ordinal → number; of two that overlap the first."""
    expected = [(edit, numbers[i]) for i, (_, edit) in enumerate(edits(source)) if i in numbers]
    result, at = "", 0
    for edit, number in sorted(expected, key=lambda pair: pair[0].begin):
        if edit.begin >= at:
            result += source[at : edit.begin] + edit.code(number)
            at = edit.end
    return result + source[at:]


# ---- The library


class Build:
    """Compiles some of the core's files anew, and links them with the objects that there are."""

    def __init__(self, root: Path, tree: Path) -> None:
        self.root, self.tree = root, tree
        self.objects = tree.parent / "objects"
        self.objects.mkdir(exist_ok=True)
        (folder,) = root.glob("build/editable-*")
        self.folder = folder
        ninja = [str(root / ".venv" / "bin" / "ninja"), "-C", str(folder), "-t"]
        database = subprocess.run([*ninja, "compdb"], check=True, capture_output=True, text=True)
        self.commands: dict[str, tuple[list[str], str]] = {}
        for entry in json.loads(database.stdout):
            if "/native/" in entry["file"] and entry["output"].endswith(".o"):
                name = str(Path(entry["file"]).relative_to(root))
                self.commands[name] = (shlex.split(entry["command"]), entry["output"])
        target = next((root / "sparknet" / "native").glob("_sparknet*.so"))
        linked = subprocess.run(
            [*ninja, "commands", "-s", str(target)], check=True, capture_output=True, text=True
        )
        self.link = linked.stdout.strip().splitlines()[-1]
        deps = subprocess.run([*ninja, "deps"], check=True, capture_output=True, text=True).stdout
        self.deps = {block.split(":", 1)[0]: block for block in deps.split("\n\n") if ":" in block}

    def users(self, path: str) -> list[str]:
        """The compiled files that a change of a file changes."""
        if path in self.commands:
            return [path]
        line = f"/{path}\n"
        return [n for n, (_, out) in self.commands.items() if line in self.deps.get(out, "") + "\n"]

    def compile(self, name: str, only_check: bool = False) -> bool:
        words, output = self.commands[name]
        made = self.objects / output.replace("/", "_")
        source = self.tree / name
        if not source.exists():  # several files of a unity build
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text((self.root / name).read_text())
        words = [word.replace(f"-I{self.root}", f"-I{self.tree}") for word in words]
        words = [str(source) if w == str(self.root / name) else w for w in words]
        words = [str(made) if word == output else word for word in words]
        words = [word for word in words if not word.startswith("-Werror")]
        words = ["-O1" if word == "-O3" else word for word in words]
        if "-MF" in words:
            words[words.index("-MF") + 1] = f"{made}.d"
        words += ["-w", "-include", str(self.tree / "mutants.h")]
        words += ["-fsyntax-only"] if only_check else []
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
        if done.returncode == 0 and not only_check:
            self.link = self.link.replace(f" {output} ", f" {made} ", 1)
        return done.returncode == 0

    def works(self, path: str, numbers: dict[int, int], only_check: bool = False) -> bool:
        """Whether a file compiles with all of some changes in it, ordinal → number."""
        text = mutated((self.root / path).read_text(), numbers)
        (self.tree / path).write_text(text)
        there = all(f"sn_mutated({number})" in text for number in numbers.values())
        return there and all(self.compile(name, only_check) for name in self.users(path))

    def finish(self) -> Path:
        """The library with everything compiled so far."""
        notes = self.objects / "notes.c"
        notes.write_text(NOTES)
        made = notes.with_suffix(".o")
        subprocess.run([CC, "-O2", "-fPIC", "-c", str(notes), "-o", str(made)], check=True)
        target = next((self.tree / "sparknet" / "native").glob("_sparknet*.so"))
        own = f" -o {self.root / 'sparknet' / 'native' / target.name} "
        assert own in self.link, self.link
        self.link = self.link.replace(own, f" -o {target} {made} ", 1)
        target.unlink()
        subprocess.run(self.link, shell=True, cwd=self.folder, check=True, capture_output=True)
        return target

    def programs(self, target: Path) -> list[str]:
        """The tests in C and C++, of the same objects."""
        found = []
        for source in sorted((self.root / "native" / "tests").glob("test_*.c*")):
            made, program = self.objects / f"{source.stem}.o", self.objects / source.stem
            words = [CC, "-std=c11"] if source.suffix == ".c" else [CXX, "-std=c++17"]
            places = [self.root / "native" / "include", self.folder / "onednn" / "include"]
            words += ["-D_GNU_SOURCE", *(f"-I{place}" for place in places)]
            subprocess.run([*words, "-c", str(source), "-o", str(made)], check=True)
            link = self.link.replace(" -shared ", f" -Wl,-rpath,{target.parent} ")
            link = link.replace(f" -o {target} ", f" -o {program} {made} ", 1)
            link = re.sub(r" \S*_sparknet\.c\.o ", " ", link)
            subprocess.run(link, shell=True, cwd=self.folder, check=True, capture_output=True)
            found.append(str(program))
        return found


def build(
    root: Path, tree: Path, room: str, number: int, seed: int, most_users: int = 8
) -> tuple[dict[int, Site], Path, list[str]]:
    """Number → change, the library that holds all of them, and the C tests."""
    work = Build(root, tree)
    (tree / "mutants.h").write_text(HEADER)
    files = sorted(
        p for p in (root / room).rglob("*.[ch]*") if p.suffix in (".c", ".cpp", ".h", ".hpp")
    )
    names = [str(path.relative_to(root)) for path in files]
    users = {name: work.users(name) for name in names}
    found = [
        site
        for name in names
        if 0 < len(users[name]) <= most_users
        for site in sites(name, (root / name).read_text())
    ]
    drawn = draw(found, seed)
    mutants: dict[int, Site] = {}
    while len(mutants) < number and drawn:
        more, drawn = drawn[: number - len(mutants)], drawn[number - len(mutants) :]
        first = max(mutants, default=0) + 1
        mutants.update(_planted(work, mutants, dict(enumerate(more, first))))
    library = work.finish()
    return mutants, library, work.programs(library)


def _planted(work: Build, old: dict[int, Site], new: dict[int, Site]) -> dict[int, Site]:
    """Those of the new changes that compile, together with the old ones."""
    kept: dict[int, Site] = {}
    for path in dict.fromkeys(one.path for one in new.values()):
        before = {one.ordinal: i for i, one in old.items() if one.path == path}
        fresh = {one.ordinal: i for i, one in new.items() if one.path == path}
        if not work.works(path, before | fresh):
            fresh = {o: i for o, i in fresh.items() if work.works(path, {**before, o: i}, True)}
            while not work.works(path, before | fresh) and fresh:
                fresh.popitem()  # it overlaps another
        kept.update({number: new[number] for number in fresh.values()})
    return kept
