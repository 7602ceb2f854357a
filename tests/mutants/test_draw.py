"""The drawing of mutants: the same for the same seed, and each a changed program that compiles."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants import native, python
from tests.mutants.site import WEIGHTS, draw

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = '''
"""Words."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from somewhere import Thing
LIMIT: "int" = 3

def f(a: int = 1, *, b=2) -> "list[3]":
    """1 + 2 < 3"""
    if a < b and seen is not None:
        raise ValueError(f"{a + 1} is too small")
    a += 1
    note(a, b, key=LIMIT)
    return a - b

def note(a, b, key=0): seen.append((a, b, key))

seen = []
'''
SITES = python.sites("f.py", PROGRAM)


def outcome(site, *given):
    """What f(*given) returns and notes, or the name of what it raises."""
    numbers = {one.ordinal: one.ordinal + 1 for one in SITES}
    awake = 0 if site is None else numbers[site.ordinal]
    space = {"__mutant__": lambda number: number == awake}
    exec(python.mutated("f.py", PROGRAM, numbers), space)
    try:
        return space["f"](*given), space["seen"]  # type: ignore[operator]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_a_draw_is_the_same_for_the_same_seed():
    assert draw(SITES, 1) == draw(SITES, 1)
    assert draw(SITES, 1) != draw(SITES, 2)
    assert sorted(one.line for one in draw(SITES, 1)) == sorted({one.line for one in SITES})


def test_texts_types_and_messages_are_no_sites():
    assert {one.line for one in SITES} == {6, 8, 10, 11, 12, 13, 14, 16}
    at_load = {(one.before, one.after) for one in SITES if one.at_load}
    numbers = [("3", "4"), ("3", "2"), ("1", "2"), ("1", "0"), ("2", "3"), ("2", "1")]
    assert at_load == {*numbers, ("0", "1")}


@pytest.mark.parametrize(
    ("before", "after", "given", "expected"),
    [
        ("a < b", "a <= b", 2, "ValueError: 3 is too small"),
        (
            "a < b and seen is not None",
            "a < b or seen is not None",
            2,
            "ValueError: 3 is too small",
        ),
        ("seen is not None", "seen is None", 1, (0, [(2, 2, 3)])),
        ("raise ValueError(f'{a + 1} is too small')", "pass", 1, (0, [(2, 2, 3)])),
        ("a += 1", "a -= 1", 3, (0, [(2, 2, 3)])),
        ("a += 1", "pass", 3, (1, [(3, 2, 3)])),
        ("note(a, b, key=LIMIT)", "note(b, a, key=LIMIT)", 3, (2, [(2, 4, 3)])),
        ("note(a, b, key=LIMIT)", "note(a, b)", 3, (2, [(4, 2, 0)])),
        ("note(a, b, key=LIMIT)", "pass", 3, (2, [])),
        ("return a - b", "return None", 3, (None, [(4, 2, 3)])),
        ("a - b", "a + b", 3, (6, [(4, 2, 3)])),
        ("3", "4", 3, (2, [(4, 2, 4)])),
    ],
)
def test_one_mutant_is_awake_at_a_time(before, after, given, expected):
    assert outcome(None, 1) == "ValueError: 2 is too small"
    assert outcome(None, given) == (
        (given - 1, [(given + 1, 2, 3)]) if given > 1 else outcome(None, 1)
    )
    (site,) = (one for one in SITES if (one.before, one.after) == (before, after))
    assert outcome(site, given) == expected


@pytest.mark.parametrize("path", ["sparknet/errors.py", "sparknet/weights/layout.py"])
def test_each_drawn_change_of_a_room_compiles(path):
    source = (ROOT / path).read_text()
    for site in draw(python.sites(path, source), 1)[:20]:
        one = python.mutated(path, source, {site.ordinal: 7})
        compile(one, path, "exec")
        assert one.count("__mutant__(7)") == 1
        assert site.before != site.after
        assert site.kind in WEIGHTS


C_PROGRAM = """\
enum { MOST = 3 };
static int seen = 1;
static void note(int a) {
    seen += a;
}
int f(int a, int b) {
    const char* text = "1 + 2"; /* 3 < 4 */
    if (a < b && text) return -1;
    for (int i = 0; i < 2; ++i) seen *= 2;
    if (b > 0)
        note(a - b);
    else
        note(b);
    return a - b * MOST;
}
"""
C_SITES = native.sites("f.c", C_PROGRAM)
MAIN = """
#include <stdio.h>
int main(int count, char** words) {
    (void)words;
    awake = count - 1;
    const int result = f(5, 2);
    printf("%d %d", result, seen);
    return 0;
}
"""
CHANGES = {
    ("a < b", "a <= b"): "-1 7",
    ("seen *= 2", "seen += 2"): "-1 8",
    ("i < 2", "i <= 2"): "-1 11",
    ("note(a - b);", ";"): "-1 4",
    ("b > 0", "!(b > 0)"): "-1 6",
    ("a - b * MOST", "a + b * MOST"): "11 7",
    ("seen += a", "seen -= a"): "-1 1",
}


def test_changes_of_c_compile_and_do_what_they_say(tmp_path):
    assert {one.line for one in C_SITES} == {4, 8, 9, 10, 11, 13, 14}
    found = {(one.before, one.after): one.ordinal for one in C_SITES}
    source = native.mutated(C_PROGRAM, {found[one]: i for i, one in enumerate(CHANGES, 1)})
    head = "static int awake;\nstatic int sn_mutated(int number) { return number == awake; }\n"
    (tmp_path / "f.c").write_text(head + source + MAIN)
    subprocess.run([native.CC, "-o", tmp_path / "f", tmp_path / "f.c"], check=True)

    def said(awake: int) -> str:
        command = [str(tmp_path / "f"), *("x" * awake)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert said(0) == "-1 7"
    assert {one: said(i) for i, one in enumerate(CHANGES, 1)} == CHANGES


def test_no_change_overlaps_another():
    both = {one.ordinal: 1 for one in C_SITES if one.before in ("a - b * MOST", "b * MOST")}
    assert native.mutated(C_PROGRAM, both).count("sn_mutated") == 1
