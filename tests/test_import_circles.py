"""No module of sparknet imports another that imports it, at once or inside a function.

Such modules are one module in several files: none can be read, tested or moved without the others.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import sparknet
from tests.test_house import imports

ROOT = Path(sparknet.__file__).resolve().parent

KEPT = {
    **dict.fromkeys(
        ("sparknet.caffe.classifier", "sparknet.caffe.detector", "sparknet.caffe.pycaffe"),
        "pycaffe's modules have `caffe` among their names, which programs use",
    ),
}
"""Modules that stay in a circle, and why."""

TYPES_ONLY = {
    ("sparknet.caffe.passes", "sparknet.caffe.net"): "what pycaffe hangs onto Net as methods",
    ("sparknet.caffe.blob", "sparknet.caffe.runtime"): "a blob lies in the memory of its net",
    ("sparknet.native.arithmetic", "sparknet.native.ndarray"): "the operators of NDArray",
    ("sparknet.onnx.step", "sparknet.onnx.conversion"): "a step of the walk over a model",
    (
        "sparknet.spark.predict.evaluate_frame",
        "sparknet.spark.predict.model",
    ): "a method of SparkModel",
}
"""Imports for type checkers alone, which would close a circle: part, whole, and what it is."""

Edges = dict[str, set[str]]


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if path.name == "__init__.py" else parts)] = path
    return found


def without_types(tree: ast.Module) -> ast.Module:
    """What runs: no branch that only type checkers read."""

    class Cut(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            test = ast.unparse(node.test)
            if test == "TYPE_CHECKING":
                return node.orelse
            return node.body if test == "not TYPE_CHECKING" else self.generic_visit(node)

    cut = Cut().visit(tree)
    assert isinstance(cut, ast.Module)
    return cut


@cache
def read(typed: bool) -> Edges:
    known = modules()
    found: Edges = {}
    for name, path in known.items():
        package = path.relative_to(ROOT.parent).parent.parts
        tree = ast.parse(path.read_text())
        edges: set[str] = set()
        for module, node in imports(tree if typed else without_types(tree), package):
            names = [one.name for one in node.names] if isinstance(node, ast.ImportFrom) else []
            inner = [f"{module}.{one}" for one in names if f"{module}.{one}" in known]
            edges.update(inner if names and len(inner) == len(names) else [module, *inner])
        # Its own package is loaded before a module is, and the version stands in the outermost.
        found[name] = {one for one in edges & known.keys() if one not in (name, "sparknet")}
    return found


def circles(edges: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """The sets of modules that reach each other."""
    reached = {name: reach(edges, name) for name in edges}
    done: set[str] = set()
    for name in edges:
        if name in reached[name] and name not in done:
            circle = {one for one in reached[name] if name in reached[one]}
            done |= circle
            yield circle


def reach(edges: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    left = [start]
    while left:
        for one in edges.get(left.pop(), ()):
            if one not in seen:
                seen.add(one)
                left.append(one)
    return seen


def test_circles_are_found():
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == [{"b", "c"}]
    assert list(circles({"a": {"b"}, "b": set()})) == []


def test_no_modules_import_each_other_but_those_that_must():
    found = list(circles(read(typed=False)))
    assert [sorted(one) for one in found if len(one - KEPT.keys()) > 1] == []
    assert {name for one in found for name in one} >= KEPT.keys()


def test_types_close_no_other_circle():
    edges = {name: set(to) for name, to in read(typed=True).items()}
    for part, whole in TYPES_ONLY:
        assert whole in edges[part], f"{part} needs no exception for {whole}"
        edges[part] -= {whole}
    found = [sorted(one - KEPT.keys()) for one in circles(edges)]
    assert [one for one in found if len(one) > 1] == []
