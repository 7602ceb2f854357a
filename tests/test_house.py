"""The house keeps its shape: directions of import, one home per library, one noun per room."""

import ast
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparknet

ROOT = Path(sparknet.__file__).resolve().parent
TOP = ROOT.parent

STOREYS = (
    {"errors", "renamed", "zip_import"},
    {"atomic_files", "devices"},
    {"proto"},
    {"native"},
    {"comm"},
    {"loaders"},
    {"layers"},
    {"graph"},
    {"dsl"},
    {"models"},
    {"onnx"},
    {"caffe"},
    {"opencv"},
    {"weights"},
    {"net"},
    {"torch"},
    {"training", "predict"},
    {"spark"},
    {"report"},
    {"mlflow", "summary"},
    {"cli"},
)
LEVEL = {room: level for level, rooms in enumerate(STOREYS) for room in rooms}

CONFINED = {
    "google": {"proto"},
    "cffi": {"native"},
    "_cffi_backend": {"native"},
    "pyspark": {"spark"},
}
EXTRAS = {
    "h5py",
    "lmdb",
    "PIL",
    "pyspark",
    "pyarrow",
    "matplotlib",
    "mlflow",
    "onnx",
    "onnxruntime",
    "pydot",
    "shtab",
    "sklearn",
    "tensorboard",
    "tokenizers",
    "torch",
    "torchvision",
    "cloudpickle",
    "cv2",
}
APART = {"spark/pipeline", "spark/sources"}
"""Packages that no other module imports, as their classes derive from an extra's."""
WHOLLY = {"torch"}
"""Rooms that import the extra of their name at the top, but for their __init__."""


def sources() -> list[Path]:
    generated = {"_descriptor.py"}
    return [p for p in sorted(ROOT.rglob("*.py")) if p.name not in generated]


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else ())))
            if module == "sparknet":
                for alias in node.names:
                    yield f"sparknet.{alias.name}", node
            else:
                yield module, node


def imported(path: Path) -> list[str]:
    package = ("sparknet", *path.relative_to(ROOT).parent.parts)
    return [name for name, _ in imports(ast.parse(path.read_text()), package)]


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    room = room_of(path)
    if room in {"__init__", "__main__"}:
        return
    assert room in LEVEL, f"{room} is no room of the house"
    for name in imported(path):
        head, *rest = name.split(".")
        if head == "sparknet" and rest and rest[0] in LEVEL and rest[0] != room:
            above = LEVEL[rest[0]] >= LEVEL[room]
            assert not above, f"{path.name} imports {name}, which lies above it"
        if head in CONFINED:
            assert room in CONFINED[head], f"{path.name} imports {name}: not in {room}"


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_extras_are_imported_inside_functions(path):
    folder = path.relative_to(ROOT).parent
    if folder.parts and folder.parts[0] in WHOLLY and path.name != "__init__.py":
        return
    if str(folder) in APART:
        name = ".".join(("sparknet", *folder.parts))
        others = [one for one in sources() if one.parent != path.parent]
        assert not [one for one in others if name in one.read_text()]
        return
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, _ in imports(node, ("sparknet", *path.relative_to(ROOT).parent.parts)):
                assert name.split(".")[0] not in EXTRAS, f"{path.name} imports {name} at the top"


def test_no_room_is_called_after_nothing():
    vague = {"utils", "util", "common", "helpers", "helper", "misc"}
    found = [p for top in ("sparknet", "native") for p in (TOP / top).rglob("*") if p.stem in vague]
    assert not found


SAME_NAME = {
    "Net": "Caffe's and OpenCV's name, in sparknet, its pycaffe and its dnn",
    "Model": "what computes, and in proto what a caffemodel or a .onnx holds",
}
"""Names that two classes have, each with the reason."""


def test_a_class_has_a_name_of_its_own():
    homes: dict[str, set[str]] = {}
    for path in sources():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(str(path.relative_to(ROOT)))
    twice = {name: sorted(places) for name, places in homes.items() if len(places) > 1}
    assert twice.keys() == SAME_NAME.keys(), twice


def test_sizes_are_watched():
    for path in sources():
        lines = len(path.read_text().splitlines())
        if lines > 400:
            warnings.warn(f"{path.relative_to(TOP)} has {lines} lines", stacklevel=1)


WITHOUT_TYPES = (
    *(
        "native",
        "comm",
        "loaders",
        "graph",
        "weights",
        "net",
        "training",
        "predict",
        "report",
        "spark",
        "cli",
    ),
    *("dsl/checks.py", "caffe/runtime.py", "caffe/host_layers.py", "caffe/timing.py"),
)
"""Where facts about a layer type are asked of its class: no type is named there.

Types are named where somebody writes nets or reads old ones: dsl has a function for each and
SparkNet's five, models are nets, proto/upgrade knows the types' earlier names.  In caffe stand
pycaffe's own lists (coord_map, draw, net_spec).
"""


@pytest.mark.parametrize("place", WITHOUT_TYPES)
def test_facts_about_layer_types_live_with_the_layers(place):
    from sparknet.layers import LAYERS

    # In cli "Python" is the language, of which doctor tells.
    types = set(LAYERS) - ({"Python"} if place == "cli" else set())
    path = ROOT / place
    for module in [path] if path.is_file() else sorted(path.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            named = isinstance(node, ast.Constant) and node.value in types
            assert not named, f"{module.name}, line {getattr(node, 'lineno', 0)}, names a type"


def test_the_engine_asks_kernels_what_is_true_of_their_types():
    """Which layers are fused, say, is not decided by names."""
    from sparknet.layers import LAYERS

    for path in sorted((TOP / "native" / "engine").rglob("*.[ch]pp")):
        named = LAYERS.keys() & set(re.findall(r'"(\w+)"', path.read_text()))
        assert not named, f"{path.name} names {', '.join(sorted(named))}"


def test_a_layer_of_the_engine_is_named_where_it_stands():
    """No list beside it: CMake takes the files, and REGISTER_LAYER the type."""
    from sparknet.native.net import kernel_types

    native = TOP / "native"
    build = (native / "CMakeLists.txt").read_text()
    assert re.findall(r"(?:layers|forks)/\w+\.cpp", build) == ["layers/channel_factors_avx512.cpp"]
    sources = [*native.glob("layers/*.cpp"), *native.glob("forks/**/*.cpp")]
    sources.append(native / "convolution" / "convolution.cpp")
    registered = [
        name
        for source in sources
        for name in re.findall(r"^REGISTER_LAYER\((\w+),", source.read_text(), re.MULTILINE)
    ]
    assert sorted(registered) == sorted(kernel_types())


def test_public_names_are_pinned():
    for name in sparknet.__all__:
        assert getattr(sparknet, name) is not None
    assert sorted({*sparknet.__all__, "spark"}) == dir(sparknet)
    assert len(set(sparknet.__all__)) == len(sparknet.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sparknet.nothing


def test_every_builder_is_found_in_one_way():
    """By name, by a star import, and by the tab key; the same object as in sparknet.dsl."""
    from sparknet import Accuracy, Power, ReLU, dsl

    assert (Accuracy, Power, ReLU) == (dsl.Accuracy, dsl.Power, dsl.ReLU)
    assert set(dsl.__all__) <= set(sparknet.__all__)
    assert dir(dsl) == sorted(dsl.__all__)
    session = object()
    space: dict[str, object] = {"spark": session}
    exec("from sparknet import *", space)
    assert space["spark"] is session
    assert set(sparknet.__all__) <= set(space)


def test_import_is_cheap():
    """Nothing but the standard library is loaded before a name is used."""
    code = "import sys, sparknet; print(*{m.split('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & (EXTRAS | set(CONFINED) | {"numpy"}), loaded


def test_the_error_tree_is_drawn_whole():
    from sparknet import errors

    assert errors.__doc__ is not None
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert set(errors.__all__) == classes - {"Any"}
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert name in errors.__doc__, f"{name} is missing from the tree in errors.py"
            assert value is errors.SparkNetError or issubclass(value, errors.SparkNetError)


def test_every_layer_type_is_computed_by_the_engine_or_by_a_host():
    from sparknet.layers import LAYERS
    from sparknet.layers.host import Host
    from sparknet.native.net import kernel_types

    computed = set(kernel_types()) - {"Host"}
    hosts = {name: LAYERS[name].host for name in LAYERS if LAYERS[name].host}
    assert computed | hosts.keys() == LAYERS.keys()
    assert not computed & hosts.keys()
    assert all(issubclass(host, Host) for host in hosts.values())
