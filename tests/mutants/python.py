"""Changes of Python code, all of them in one program: each behind `__mutant__(number)`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from tests.mutants.site import Site

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES_ONLY = {"__all__", "__slots__", "__version__"}
N = TypeVar("N", bound=ast.AST)


class Change(NamedTuple):
    kind: str
    make: Callable[[ast.AST], ast.AST]
    """Turns a copy of the node into the changed one."""


def sites(path: str, source: str) -> list[Site]:
    """Every change that `mutated` can make of a source."""
    program = _Program(path, {})
    program.visit(ast.parse(source))
    return program.found


def mutated(path: str, source: str, numbers: Mapping[int, int]) -> str:
    """The source with some of its changes, ordinal → number of the mutant."""
    program = _Program(path, numbers)
    return ast.unparse(ast.fix_missing_locations(program.visit(ast.parse(source)))) + "\n"


class _Program(ast.NodeTransformer):
    def __init__(self, path: str, numbers: Mapping[int, int]) -> None:
        self.path, self.numbers = path, numbers
        self.found: list[Site] = []
        self.depth = 0
        self.conditions: set[int] = set()

    def visit(self, node: ast.AST) -> ast.AST:
        if _is_no_code(node):
            return node
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            self.conditions.add(id(node.test))
        changes = list(_changes(node, id(node) in self.conditions))
        first = len(self.found)
        self.found += [self._site(node, change, first + i) for i, change in enumerate(changes)]
        base = self._inside(node)
        result = base
        for ordinal, change in enumerate(changes, first):
            if ordinal in self.numbers:
                changed = change.make(copy.deepcopy(base))
                result = _either(self.numbers[ordinal], changed, result)
        return result

    def _site(self, node: ast.AST, change: Change, ordinal: int) -> Site:
        changed = change.make(copy.deepcopy(node))
        before, after = (" ".join(ast.unparse(one).split())[:90] for one in (node, changed))
        line = getattr(node, "lineno", 0)
        return Site(self.path, line, ordinal, change.kind, before, after, self.depth == 0)

    def _inside(self, node: ast.AST) -> ast.AST:
        """The node with its children visited, less annotations, decorators and bases."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._defaults(node.args)
            self.depth += 1
            node.body = self._all(node.body)
            self.depth -= 1
        elif isinstance(node, ast.Lambda):
            self._defaults(node.args)
            self.depth += 1
            node.body = self._one(node.body)
            self.depth -= 1
        elif isinstance(node, ast.ClassDef):
            node.body = self._all(node.body)
        elif isinstance(node, ast.AnnAssign):
            node.value = node.value and self._one(node.value)
        elif isinstance(node, ast.match_case):
            node.guard = node.guard and self._one(node.guard)
            node.body = self._all(node.body)
        else:
            self.generic_visit(node)
        return node

    def _defaults(self, args: ast.arguments) -> None:
        args.defaults = self._all(args.defaults)
        args.kw_defaults = [one and self._one(one) for one in args.kw_defaults]

    def _all(self, nodes: list[N]) -> list[N]:
        return [self._one(one) for one in nodes]

    def _one(self, node: N) -> N:
        return self.visit(node)  # type: ignore[return-value]


def _is_no_code(node: ast.AST) -> bool:
    """Texts, types, what only a type checker reads, and the names of a module."""
    if isinstance(node, (ast.JoinedStr, ast.Assert, ast.pattern, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Name) and node.targets[0].id in NAMES_ONLY
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "TypeVar")


def _either(number: int, changed: ast.AST, base: ast.AST) -> ast.AST:
    test = ast.Call(ast.Name("__mutant__", ast.Load()), [ast.Constant(number)], [])
    if isinstance(base, ast.expr):
        assert isinstance(changed, ast.expr)
        return ast.IfExp(test, changed, base)
    assert isinstance(changed, ast.stmt)
    assert isinstance(base, ast.stmt)
    return ast.If(test, [changed], [base])


def _changes(node: ast.AST, is_condition: bool) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield Change("comparison", _compare(i, COMPARED[type(op)]))
    elif isinstance(node, ast.BinOp):
        if type(node.op) in COMPUTED and not (_is_text(node.left) or _is_text(node.right)):
            yield Change("arithmetic", _with("op", COMPUTED[type(node.op)]()))
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in COMPUTED and not _is_text(node.value):
            yield Change("arithmetic", _with("op", COMPUTED[type(node.op)]()))
        yield Change("removed statement", _removed)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield Change("boolean", _with("op", other))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        kind = "condition" if isinstance(node.op, ast.Not) else "arithmetic"
        yield Change(kind, lambda one: one.operand)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.stmt):
        yield from _statements(node)
    if is_condition and not isinstance(node, (ast.Compare, ast.UnaryOp)):
        yield Change("condition", lambda one: ast.UnaryOp(ast.Not(), one))  # type: ignore[arg-type]


def _statements(node: ast.stmt) -> Iterator[Change]:
    if isinstance(node, ast.Raise):
        yield Change("removed raise", _removed)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield Change("removed statement", _removed)
    elif isinstance(node, ast.Assign):
        if all(isinstance(one, (ast.Attribute, ast.Subscript)) for one in node.targets):
            yield Change("removed statement", _removed)
    elif isinstance(node, ast.Return):
        if not (node.value is None or _is_constant(node.value, None)):
            yield Change("return", _with("value", ast.Constant(None)))
    elif isinstance(node, (ast.Break, ast.Continue)):
        other = ast.Continue if isinstance(node, ast.Break) else ast.Break
        yield Change("return", lambda one: other())


def _constants(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield Change("constant", _with("value", not node.value))
    elif isinstance(node.value, (int, float)):
        yield Change("constant", _with("value", node.value + 1))
        if node.value:
            yield Change("constant", _with("value", node.value - 1))


def _calls(node: ast.Call) -> Iterator[Change]:
    plain = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)
    first = node.args[:2]
    if len(first) == 2 and all(isinstance(one, plain) and not _is_text(one) for one in first):
        yield Change("arguments", _swap)
    for i, keyword in enumerate(node.keywords):
        if keyword.arg not in (None, "strict"):  # zip's is an assertion
            yield Change("arguments", _without(i))


def _compare(at: int, op: type[ast.cmpop]) -> Callable[[ast.AST], ast.AST]:
    def make(one: ast.AST) -> ast.AST:
        assert isinstance(one, ast.Compare)
        one.ops[at] = op()
        return one

    return make


def _with(field, value):
    def make(one: ast.AST) -> ast.AST:
        setattr(one, field, value)
        return one

    return make


def _without(keyword: int) -> Callable[[ast.AST], ast.AST]:
    def make(one: ast.AST) -> ast.AST:
        del one.keywords[keyword]  # type: ignore[attr-defined]
        return one

    return make


def _swap(one: ast.AST) -> ast.AST:
    assert isinstance(one, ast.Call)
    one.args[:2] = one.args[1], one.args[0]
    return one


def _removed(one: ast.AST) -> ast.AST:
    return ast.Pass()


def _is_constant(node, value):
    return isinstance(node, ast.Constant) and node.value is value


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )
