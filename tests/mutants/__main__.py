"""How many of a room's mutants the tests kill: python -m tests.mutants ROOM --number 50 --seed 1"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.mutants import native, python
from tests.mutants.site import Site, draw

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutants"
HERE = Path(__file__).resolve().parent

ALSO = {
    "errors": ["tests/test_errors.py", "tests/proto", "tests/weights"],
    "graph": ["tests/graph", "tests/dsl", "tests/layers"],
    "layers": ["tests/layers", "tests/graph"],
    "native": [
        "tests/native",
        "tests/caffe/test_net.py",
        "tests/caffe/test_reshape.py",
        "tests/comm/test_codecs.py",
        "tests/loaders/test_cut_short.py",
        "tests/loaders/test_datums.py",
        "tests/loaders/test_resize.py",
        "tests/loaders/test_transform.py",
    ],
    "weights": ["tests/weights", "tests/net/test_net.py", "tests/comm/test_codecs.py"],
    "native/ndarray": [
        "tests/native",
        "tests/comm/test_codecs.py",
        "tests/comm/test_shared_memory.py",
        "tests/loaders/test_cut_short.py",
    ],
    "native/engine": ["tests/caffe", "tests/loaders", "tests/native", "tests/net"],
    "native/convolution": ["tests/caffe"],
    "native/forks": ["tests/caffe"],
    "native/layers": ["tests/caffe"],
}
"""Where a room's tests lie, if not in a folder of its name alone."""


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "room",
        help="errors, proto, …, or native/convolution, /layers, /engine, /ndarray",
    )
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="*", help="files and folders of tests, else the room's")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of the run that maps")
    parser.add_argument("--again", action="store_true", help="the survivors of the last run alone")
    given = parser.parse_args()
    work = WORK / given.room.replace("/", "_")
    plan = survivors(work) if given.again else made(work, given.room, given.number, given.seed)
    plan["places"] = given.tests or ALSO.get(given.room, [f"tests/{given.room}"])
    plan["map_seconds"] = given.limit
    (work / "plan.json").write_text(json.dumps(plan))
    for name in ("notes", "mapping"):
        (work / name).write_text("")
    tree = work / "tree"
    variables = {**os.environ, "PYTHONPATH": str(tree), "SPARKNET_REACHED": plan["notes"]}
    command = [sys.executable, "-m", "tests.mutants.judge", str(work / "plan.json")]
    with (work / "log").open("a") as log:
        subprocess.run(command, cwd=tree, env=variables, stdout=log, check=True)
    print(*report(plan), f"{given.room}: {ratio(plan)} (seed {plan['seed']})", sep="\n")


def made(work, room, number, seed):
    """A new tree with mutants, and the plan to judge them."""
    shutil.rmtree(work, ignore_errors=True)
    tree = work / "tree"
    copy_tree(tree)
    library, programs = None, list[str]()
    if room.startswith("native/"):
        mutants, library, programs = native.build(ROOT, tree, room, number, seed)
    else:
        mutants = plant(tree, room, number, seed)
    files = ("notes", "mapping", "verdicts", "log", "temporary")
    (work / "verdicts").write_text("")
    every = [
        {"number": i, "path": one.path, "at_load": one.at_load, "says": str(one)}
        for i, one in mutants.items()
    ]
    return {
        "seed": seed,
        "all": every,
        "mutants": every,
        "library": library and str(library),
        "programs": programs,
        **{name: str(work / name) for name in files},
    }


def survivors(work):
    """The last run's plan for those that survived it or were late, with the tests of today."""
    shutil.copytree(ROOT / "tests", work / "tree" / "tests", dirs_exist_ok=True)
    plan = json.loads((work / "plan.json").read_text())
    alive = {number for number, one in verdicts(plan).items() if one["outcome"] != 1}
    plan["mutants"] = [one for one in plan["all"] if one["number"] in alive]
    return plan


def copy_tree(tree: Path) -> None:
    """What git knows or does not ignore, and what the build puts into the source tree."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    built = [*(ROOT / "sparknet").rglob("*.so*"), *(ROOT / "sparknet" / "proto").glob("*.pyi")]
    paths = [ROOT / name for name in names.split("\0") if name]
    for path in [*paths, *built, ROOT / "sparknet" / "proto" / "_descriptor.py"]:
        if path.exists():
            copied = tree / path.relative_to(ROOT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copied, follow_symlinks=False)
    shutil.copy(HERE / "sitecustomize.py", tree)


def python_sites(room: str) -> list[Site]:
    place = ROOT / "sparknet" / room
    files = sorted(place.rglob("*.py")) or [place.with_suffix(".py")]
    made = {"_descriptor.py"}
    return [
        site
        for path in files
        if path.name not in made
        for site in python.sites(str(path.relative_to(ROOT)), path.read_text())
    ]


def plant(tree: Path, room: str, number: int, seed: int) -> dict[int, Site]:
    """Number → change, all of them written into the tree."""
    mutants = dict(enumerate(draw(python_sites(room), seed)[:number], 1))
    for path in {one.path for one in mutants.values()}:
        numbers = {one.ordinal: i for i, one in mutants.items() if one.path == path}
        (tree / path).write_text(python.mutated(path, (ROOT / path).read_text(), numbers))
    return mutants


def verdicts(plan):
    """Number → a verdict: killed in any run, else late in any, else survived in all."""
    found = {}
    for one in map(json.loads, Path(plan["verdicts"]).read_text().splitlines()):
        before = found.get(one["number"], one)
        found[one["number"]] = min(before, one, key=lambda each: (1, 2, 0).index(each["outcome"]))
    return found


def report(plan):
    """A line for each survivor."""
    says = {one["number"]: one["says"] for one in plan["all"]}
    for number, one in verdicts(plan).items():
        if one["outcome"] == 0:
            reached = f"{one['tests']} tests reach it" if one["tests"] else "no test reaches it"
            yield f"survived ({reached}) {says[number]}"


def ratio(plan):
    outcomes = [one["outcome"] for one in verdicts(plan).values()]
    late, killed = outcomes.count(2), sum(one != 0 for one in outcomes)
    share = f"{100 * killed / max(1, len(outcomes)):.0f} %"
    return f"{killed} of {len(outcomes)} killed, {late} of them late, {share}"


if __name__ == "__main__":
    main()
