"""Trees of ai.onnx.ml against onnxruntime: drawn ones, in the forms of scikit-learn and XGBoost."""

from random import Random

import numpy as np
import pytest

import sparknet
from sparknet.errors import FileError
from tests.onnx.graphs import agree, onnx, read_model, run, save
from tests.onnx.test_classical import INT, learned, model

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
LIMITS = (-1.0, -0.5, 0.0, 0.25, 1.0)


class Grown:
    """Trees whose decisions are drawn; values that lie on a limit tell the modes apart."""

    def __init__(self, random: Random, depth: int) -> None:
        self.random, self.depth = random, depth
        self.nodes = {name: [] for name in COLUMNS}
        self.leaves: list[tuple[int, int]] = []

    def tree(self, number: int, mode: str) -> None:
        self._node(number, 0, 0, mode)

    def _node(self, tree: int, number: int, level: int, mode: str) -> None:
        is_leaf = level == self.depth or (level > 0 and self.random.random() < 0.2)
        yes, no = 2 * number + 1, 2 * number + 2
        values = (
            *(tree, number, "LEAF" if is_leaf else mode),
            *(self.random.randrange(4), self.random.choice(LIMITS)),
            *((0, 0) if is_leaf else (yes, no)),
        )
        for name, value in zip(COLUMNS, values, strict=True):
            self.nodes[name].append(value)
        if is_leaf:
            self.leaves.append((tree, number))
            return
        self._node(tree, yes, level + 1, mode)
        self._node(tree, no, level + 1, mode)

    def weights(self, kind, outputs, low=-1.0):
        rows = [(*leaf, output) for leaf in self.leaves for output in outputs]
        trees, nodes, ids = map(list, zip(*rows, strict=True))
        values = [self.random.uniform(low, 1) for _ in rows]
        names = (f"{kind}_{one}" for one in ("treeids", "nodeids", "ids", "weights"))
        return dict(zip(names, (trees, nodes, ids, values), strict=True))


COLUMNS = tuple(
    f"nodes_{name}"
    for name in (
        *("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids"),
    )
)


def grown(seed: int, trees: int = 7, depth: int = 4, mode: str | None = None) -> Grown:
    random = Random(seed)
    made = Grown(random, depth)
    for number in range(trees):
        made.tree(number, mode or random.choice(MODES))
    return made


def rows():
    """Values on the limits, beside them, and between."""
    numbers = np.random.default_rng(0)
    x = numbers.choice(np.float32(LIMITS), (60, 4))
    x[20:40] = np.nextafter(x[20:40], numbers.choice(np.float32([-9, 9]), (20, 4)))
    x[40:] = numbers.normal(size=(20, 4))
    return x


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
@pytest.mark.parametrize("mode", [*MODES, None])
def test_regressors(mode, aggregate, targets, tmp_path):
    trees = grown(3, mode=mode)
    weights = trees.weights("target", range(targets))
    made = learned(
        "TreeEnsembleRegressor",
        "x",
        n_targets=targets,
        aggregate_function=aggregate,
        base_values=[0.5, -1.0, 2.0][:targets],
        **trees.nodes,
        **weights,
    )
    types = agree(model(made), {"x": rows()}, tmp_path)
    assert types.count("MatMul") == 1


@pytest.mark.parametrize("labels", [[0, 1, 2], [7, 3, 11]])
@pytest.mark.parametrize("after", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_classifiers(after, labels, tmp_path):
    trees = grown(4)
    made = learned(
        "TreeEnsembleClassifier",
        "x",
        "label scores",
        classlabels_int64s=labels,
        post_transform=after,
        base_values=[0.1, 0.2, 0.3],
        **trees.nodes,
        **trees.weights("class", range(3)),
    )
    both = model(made, outputs=("label", "scores"), types={"label": INT})
    agree(both, {"x": rows()}, tmp_path)
    got = sparknet.Net(tmp_path / "model.onnx").forward({"x": rows()})
    assert set(got) == {"label", "scores"}


@pytest.mark.parametrize("low", [-1.0, 0.0])
@pytest.mark.parametrize("after", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_two_classes_of_one_score(after, low, tmp_path):
    """As XGBoost (LOGISTIC) and forests of scikit-learn (shares, none below 0) write them."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if after == "LOGISTIC" and not low and onnxruntime.__version__.startswith("1.18."):
        pytest.skip("ONNX Runtime 1.18 gives these scores otherwise than 1.32")
    trees = grown(5)
    made = learned(
        "TreeEnsembleClassifier",
        "x",
        "label scores",
        classlabels_int64s=[0, 1],
        post_transform=after,
        **({"base_values": [0.3]} if low else {}),
        **trees.nodes,
        **trees.weights("class", [0], low),
    )
    both = model(made, outputs=("label", "scores"), types={"label": INT})
    agree(both, {"x": rows()}, tmp_path)


def test_a_tree_that_is_a_leaf(tmp_path):
    trees = Grown(Random(1), 0)
    trees.tree(0, "BRANCH_LEQ")
    made = learned(
        "TreeEnsembleRegressor", "x", n_targets=1, **trees.nodes, **trees.weights("target", [0])
    )
    agree(model(made), {"x": rows()}, tmp_path)


def changed(trees, **columns):
    return {**trees.nodes, **trees.weights("target", [0]), **columns}


def test_refusals(tmp_path):
    trees = grown(6, trees=1, depth=2, mode="BRANCH_LEQ")
    many = len(trees.nodes["nodes_modes"])
    refused = {
        "a tree of it has . roots": {"nodes_falsenodeids": [0] * many},
        "a decision of it is 'BRANCH_EQ'": {
            "nodes_modes": ["BRANCH_EQ" if m != "LEAF" else m for m in trees.nodes["nodes_modes"]]
        },
        "it reads feature 9 of 4": {"nodes_featureids": [9] * many},
        "attributes of several lengths": {"nodes_values": [0.0]},
        "is no leaf and has a weight": {"target_nodeids": [0] * len(trees.leaves)},
        "its post_transform 'PROBIT'": {"post_transform": "PROBIT"},
    }
    for says, columns in refused.items():
        made = learned("TreeEnsembleRegressor", "x", n_targets=1, **changed(trees, **columns))
        onnx.save(model(made), str(tmp_path / "model.onnx"))
        with pytest.raises(FileError, match=says):
            read_model(tmp_path / "model.onnx")


def test_trees_that_are_too_large(tmp_path):
    """A chain of decisions is as many leaves as it is long."""
    many = 6000
    last = list(range(2 * many + 1))
    modes = ["BRANCH_LEQ" if one % 2 == 0 and one < 2 * many else "LEAF" for one in last]
    yes = [one + 1 if mode != "LEAF" else 0 for one, mode in zip(last, modes, strict=True)]
    no = [one + 2 if mode != "LEAF" else 0 for one, mode in zip(last, modes, strict=True)]
    same = {name: [0] * len(last) for name in ("nodes_treeids", "nodes_featureids")}
    made = learned(
        "TreeEnsembleRegressor",
        "x",
        **same,
        nodes_nodeids=last,
        nodes_modes=modes,
        nodes_values=[0.0] * len(last),
        nodes_truenodeids=yes,
        nodes_falsenodeids=no,
    )
    onnx.save(model(made), str(tmp_path / "model.onnx"))
    says = "its trees are too large for products of matrices: run it by onnxruntime, or"
    with pytest.raises(FileError, match=says):
        read_model(tmp_path / "model.onnx")


def test_a_forest_of_two_rows(tmp_path):
    """Any number of records."""
    trees = grown(8)
    made = learned(
        "TreeEnsembleRegressor", "x", n_targets=1, **trees.nodes, **trees.weights("target", [0])
    )
    path = save(model(made), tmp_path)
    net = sparknet.Net(path)
    for count in (1, 2, 60):
        x = rows()[:count]
        np.testing.assert_allclose(net.forward({"x": x})["y"], run(path, {"x": x})["y"], rtol=1e-5)
