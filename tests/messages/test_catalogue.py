"""A hundred plausible mistakes: each answer is a sentence that says what is wrong, and where.

It comes before any training, within two seconds, and is an exception of sparknet.errors, or one
line and perhaps a hint on stderr.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparknet
from sparknet import (
    ActivationLayer,
    ConvLayer,
    Convolution,
    LinearLayer,
    Net,
    NetParams,
    PoolLayer,
    RDDLayer,
    SoftmaxWithLoss,
    SolverParams,
    caffe,
    find_lr,
    loaders,
    models,
    plan,
    train,
)
from sparknet.cli import main
from sparknet.errors import SparkNetError
from tests.messages.files import NET, X, Y, write_files
from tests.messages.judge import judge

pytest.importorskip("PIL")
pytest.importorskip("h5py")
pytest.importorskip("onnx")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SECONDS = 2.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    before, folder = Path.cwd(), tmp_path_factory.mktemp("mistakes")
    os.chdir(folder)
    write_files()
    os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)


def solver(**settings):
    given = {"base_lr": 0.1, "lr_policy": "fixed", "max_iter": 3} | settings
    return SolverParams(net=NetParams.from_text(NET), **given)


def trained(data=(X, Y), using=None, **settings):
    return train(solver() if using is None else using, data, **settings)


def classes(names: str, outputs: int, inner: str = "", empty: str = "") -> None:
    """Train on a folder with a subfolder of each letter, in which are pictures or such folders."""
    from PIL import Image

    top = Path(f"classes_{names}{inner}{empty}")
    for name in names:
        for folder in inner or ".":
            (top / name / folder).mkdir(parents=True)
            if name not in empty:
                Image.new("RGB", (4, 4)).save(top / name / folder / "a.png")
    net = NetParams(
        "few",
        RDDLayer("data", shape=[2, 3, 4, 4]),
        RDDLayer("label", shape=[2]),
        LinearLayer("ip", "data", num_outputs=outputs),
        SoftmaxWithLoss("loss", ["ip", "label"]),
    )
    train(SolverParams(net=net, base_lr=0.1, lr_policy="fixed"), top, steps=0)


def bare(old="", new="", **settings):
    """A solver of the net with another text in a place; without one, of the net without a loss."""
    text = NET.replace(old, new) if old else NET.partition('layer { name: "accuracy"')[0]
    text = text if old else text.replace(NET.splitlines()[2], "")
    if settings.pop("sigmoid", False):
        text = text.partition('layer { name: "accuracy"')[0] + SIGMOID
    given = {"base_lr": 0.1, "lr_policy": "fixed", "max_iter": 3} | settings
    return SolverParams(net=NetParams.from_text(text), **given)


SIGMOID = """
layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def stepped(data, using="solver.prototxt"):
    net = Net(using)
    net.set_training_data(data)
    net.train(1)


def run(batch, outputs=None, **images):
    return Net("deploy.prototxt", "deploy.caffemodel", **images).forward(batch, outputs)


def net_of(*layers):
    return NetParams("n", RDDLayer("data", shape=[1, 3, 8, 8]), *layers)


def deploy():
    return caffe.Net("deploy.prototxt", caffe.TEST)


def loaded():
    return sparknet.load("deploy.prototxt", "deploy.caffemodel")


Made = Callable[[], Any]
PYTHON: dict[str, tuple[Made, list[str]]] = {
    # -- a net and its files
    "a number for a net": (lambda: Net(5), ["this int", "path"]),
    "None for a net": (lambda: Net(None), ["nothing", "path"]),
    "a folder for a net": (lambda: Net("pictures"), ["pictures", "is a folder"]),
    "a picture for a net": (lambda: Net("a.jpg"), ["a.jpg:1:1", "no text file"]),
    "weights of another net": (
        lambda: Net("net.prototxt", "other.caffemodel"),
        ["layer 'ip'", "(7, 3)", "(2, 3)", "rename it"],
    ),
    "a prototxt for weights": (lambda: Net("net.prototxt", "net.prototxt"), ["is a text file"]),
    "a cut caffemodel": (
        lambda: Net("net.prototxt", "cut.caffemodel"),
        ["cut.caffemodel", "cut short"],
    ),
    "an empty caffemodel": (lambda: Net("net.prototxt", "empty.caffemodel"), ["is empty"]),
    "a text for weights": (lambda: Net("net.prototxt", "text.txt"), ["text.txt", "is a text file"]),
    "a picture for weights": (lambda: Net("net.prototxt", "a.jpg"), ["a.jpg", "no binary file"]),
    "a misspelt keyword": (
        lambda: Net("net.prototxt", weigths="net.caffemodel"),
        ["'weigths'", "'weights'"],
    ),
    "a phase": (
        lambda: Net("net.prototxt", phase="tset"),
        ["'tset'", "TRAIN (0)", "TEST (1)"],
    ),
    "a precision": (
        lambda: Net("net.prototxt", precision="fp16"),
        ["'fp16'", "'bf16'"],
    ),
    "a misspelt field": (lambda: Net("typo.prototxt"), ["typo.prototxt:5:25", "'num_output'"]),
    "an open brace": (lambda: Net("brace.prototxt"), ["brace.prototxt:8", "'}'"]),
    "a misspelt type": (lambda: Net("unknown.prototxt"), ["layer 'ip'", "'InnerProduct'"]),
    "a misspelt bottom": (lambda: Net("bottom.prototxt"), ["layer 'ip'", "'dta'", "'data'"]),
    "a misspelt phase": (lambda: Net("enum.prototxt"), ["enum.prototxt:7", "'TESTING'", "'TEST'"]),
    "a broken ONNX model": (lambda: Net("bad.onnx"), ["bad.onnx", "no ONNX model"]),
    "a folder that cannot be made": (
        lambda: Net("net.prototxt").save("net.prototxt/net.caffemodel"),
        ["net.prototxt/net.caffemodel", "cannot be written"],
    ),
    "a mean file that is not there": (
        lambda: Net("deploy.prototxt", resize=8, mean="mean.binaryproto"),
        ["mean.binaryproto", "no such file"],
    ),
    "a mean of two channels": (
        lambda: Net("deploy.prototxt", resize=8, mean=(1, 2)),
        ["mean has 2 values for 3 channels"],
    ),
    "a size in words": (
        lambda: Net("deploy.prototxt", resize="big"),
        ["resize", "'big'"],
    ),
    # -- predicting
    "a misspelt input": (lambda: run({"dta": np.zeros((2, 3, 8, 8))}), ["'dta'", "'data'"]),
    "pictures of another size": (
        lambda: run({"data": np.zeros((2, 3, 9, 8))}),
        ["layer 'ip'", "2 x 192"],
    ),
    "a picture that is not there": (
        lambda: run({"data": ["b.jpg"]}, resize=8),
        ["'data'", "'b.jpg'", "does not exist"],
    ),
    "a cut picture": (lambda: run({"data": ["cut.jpg"]}, resize=8), ["'cut.jpg'", "no image"]),
    "no pictures": (lambda: run({"data": []}), ["'data'", "no records"]),
    "no batch": (lambda: run(None), ["no batch", "forward takes"]),
    "an output that is not there": (
        lambda: run({"data": np.zeros((2, 3, 8, 8))}, ["fc7"]),
        ["'fc7'", "'prob'"],
    ),
    "load: a file that is not there": (lambda: sparknet.load("x.caffemodel"), ["x.caffemodel"]),
    "load: a misspelt column": (
        lambda: loaded().predict(pd.DataFrame({"pixels": [1]})),
        ["'data'", "'pixels'", "columns="],
    ),
    "load: rows of another length": (
        lambda: loaded().predict(np.zeros((2, 5))),
        ["5", "(3, 8, 8)"],
    ),
    # -- Net as in SparkNet
    "training without a solver": (
        lambda: Net("net.prototxt", phase=1).train(3),
        ["without a solver"],
    ),
    "training without data": (lambda: Net("solver.prototxt").train(3), ["no training data"]),
    "testing without data": (lambda: Net("solver.prototxt").test(), ["set_validation_data"]),
    "columns of two lengths": (lambda: stepped((X, Y[:7])), ["'data' has 20", "'label' has 7"]),
    "a misspelt column": (lambda: stepped({"dat": X, "label": Y}), ["'data'", "it has 'dat'"]),
    "records too wide": (lambda: stepped((np.zeros((20, 4)), Y)), ["'data'", "is 4", "wants 3"]),
    "no records": (lambda: stepped((X[:0], Y[:0])), ["the data is empty"]),
    "labels one hot": (lambda: stepped((X, np.eye(2)[Y])), ["'label'", "is 2", "one number"]),
    "labels as words": (
        lambda: stepped((X, np.array(["cat", "dog"] * 10))),
        ["'label'", "'cat'", "numpy.unique"],
    ),
    "labels too large": (lambda: stepped((X, Y + 5)), ["layer 'loss'", "label 5", "2 classes"]),
    "labels below zero": (lambda: stepped((X, Y - 1)), ["layer 'loss'", "label -1", "2 classes"]),
    "a data set that is not there": (lambda: stepped("trian.npz"), ["trian.npz", "not exist"]),
    # -- train
    "train: labels of a sigmoid": (
        lambda: trained(
            (X, 2.0 * np.eye(2)[Y]), bare("{ dim: [5] }", "{ dim: [5, 2] }", sigmoid=True)
        ),
        ["'label'", "holds 2", "from 0 to 1"],
    ),
    "train: not a number, late": (
        lambda: trained((np.where(np.arange(20)[:, None] == 17, np.nan, X), Y)),
        ["'data'", "nan", "record 17"],
    ),
    "train: records in a list": (
        lambda: trained([{"data": X[0], "label": 1}]),
        ["'label' of a batch is one number", "whole columns"],
    ),
    "train: gaps": (lambda: trained((np.ma.masked_less(X, 0.5), Y)), ["'data'", "masked"]),
    "train: no records to validate with": (
        lambda: trained(validation=(X[:0], Y[:0])),
        ["the validation data is empty"],
    ),
    "train: a metric without validation": (
        lambda: trained(metric="loss"),
        ["metric='loss' is for validation"],
    ),
    "train: a goal that is none": (
        lambda: trained(validation=(X, Y), metric="loss", goal="max"),
        ["goal is 'max'", "for 'loss' it is 'min'"],
    ),
    "train: more classes than outputs": (
        lambda: classes("abc", 2),
        ["3 classes", "loss has 2"],
    ),
    "train: a table": (
        lambda: trained(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})),
        ["a, b, y", "data, label", "features=", "label="],
    ),
    "train: a column of a table": (
        lambda: trained(pd.DataFrame({"a": X[:, 0], "y": Y}), features=["age"], label="y"),
        ["no column 'age'"],
    ),
    "train: a gap in a table": (
        lambda: trained(pd.DataFrame({"a": X[:, 0] * np.nan, "y": Y}), features=["a"], label="y"),
        ["'a'", "nan in row 0", "fillna"],
    ),
    "train: a batch size": (
        lambda: trained(batch_size=32),
        ["batch_size=32", "module of PyTorch", "first size of its inputs"],
    ),
    "weights by another name": (lambda: Net("net.prototxt").save("x.pt"), ["x.pt", ".caffemodel"]),
    "train: no loss": (
        lambda: trained({"data": X}, bare()),
        ["'small'", "no loss", "'ip'", "loss_weight"],
    ),
    "train: a loss for testing alone": (
        lambda: trained(using=bare('top: "loss"', 'top: "loss" include { phase: TEST }')),
        ["no loss in its TRAIN phase", "loss_weight: 1"],
    ),
    "train: no policy": (
        lambda: trained(using=solver().but(lr_policy=None)),
        ["no lr_policy", "'fixed' keeps base_lr", "step"],
    ),
    "train: no end": (
        lambda: trained(using=solver(max_iter=0)),
        ["no end", "steps, epochs or seconds"],
    ),
    "train: no data": (lambda: train(solver()), ["'data'"]),
    "train: no workers": (lambda: trained(workers=0), ["workers", "at least 1", "0"]),
    "train: a strategy": (lambda: trained(strategy="averging"), ["'averging'", "'averaging'"]),
    "train: a number for a strategy": (lambda: trained(strategy=3), ["strategy", "3", "name"]),
    "train: a keyword": (lambda: trained(epoch=3), ["'epoch'", "'epochs'"]),
    "train: a measure": (
        lambda: trained(metrics=["acuracy"], validation=(X, Y)),
        ["'acuracy'", "accuracy'"],
    ),
    "train: patience alone": (lambda: trained(patience=2), ["patience=2", "validations"]),
    "train: a metric": (
        lambda: trained(patience=2, metric="acc", validation=(X, Y)),
        ["'acc'", "'accuracy'"],
    ),
    "train: a solver that is not there": (
        lambda: trained(using="slover.prototxt"),
        ["slover.prototxt", "no such file"],
    ),
    "train: a net for a solver": (lambda: trained(using="net.prototxt"), ["needs a solver"]),
    "train: a solver without a net": (lambda: trained(using="nonet.prototxt"), ["net_param"]),
    "train: the solver's net is not there": (
        lambda: trained(using="nowhere.prototxt"),
        ["nirgends.prototxt", "no such file"],
    ),
    "train: not a number": (lambda: trained((X * np.nan, Y)), ["'data'", "nan", "record 0"]),
    "train: an empty folder": (lambda: trained("nothing"), ["nothing", "no image"]),
    "train: a part too many": (lambda: trained((X, Y, Y)), ["tuple of 3", "'data', 'label'"]),
    "train: a list of pairs": (lambda: trained([("a", "b")]), ["a batch is a tuple", "dicts"]),
    "train: validation without labels": (
        lambda: trained(validation={"data": X}),
        ["validation data", "'label'", "it has 'data'"],
    ),
    "find_lr: rates the wrong way round": (
        lambda: find_lr(solver(), (X, Y), low=1, high=0.1),
        ["low", "high"],
    ),
    "plan: no workers": (lambda: plan(solver(), workers=[0]), ["workers", "[0]"]),
    # -- data sets
    "HDF5 with another data set": (lambda: trained("wrong.h5"), ["'data'", "'images'"]),
    "HDF5 of two lengths": (lambda: trained("short.h5"), ["short.h5", "'data' 20", "'label' 7"]),
    "a cut .npz": (lambda: trained("cut.npz"), ["cut.npz", "no .npz"]),
    "a cut Parquet": (lambda: trained("cut.parquet"), ["cut.parquet", "Parquet"]),
    "a cut LMDB": (lambda: loaders.open_records("cut_lmdb").take([19]), ["cut_lmdb", "cut short"]),
    "pictures for an LMDB": (
        lambda: caffe.Net("pictures_net.prototxt", caffe.TRAIN),
        ["layer 'data'", "'pictures'", "data.mdb"],
    ),
    "an LMDB that is not there": (
        lambda: caffe.Net("nodb_net.prototxt", caffe.TRAIN),
        ["layer 'data'", "'nodb'", "does not exist"],
    ),
    "one array": (lambda: loaders.open_records("data.npy"), ["data.npy", "which column"]),
    "one picture": (lambda: loaders.open_records("a.jpg"), ["a.jpg", "one image", "folder"]),
    "a table of text": (lambda: loaders.open_records("table.csv"), ["line 1", "'a,b'", "pandas"]),
    "a list without labels": (
        lambda: loaders.open_records("badlist.txt"),
        ["badlist.txt", "line 1"],
    ),
    "a list of what is not there": (
        lambda: loaders.open_records("list.txt").take([1]),
        ["pictures/zz.jpg", "does not exist"],
    ),
    "a crop larger than the image": (
        lambda: loaders.Transform(crop_size=9)(np.zeros((2, 3, 8, 8), np.uint8)),
        ["crop_size 9", "3 x 8 x 8"],
    ),
    "a batch of none": (
        lambda: loaders.Batches(loaders.ArrayRecords(data=X), 0),
        ["0 records", "at least 1"],
    ),
    "a record that is not there": (lambda: loaders.ArrayRecords(data=X).take([99]), ["99 of 20"]),
    # -- nets and solvers in Python
    "dsl: a field": (lambda: Convolution("c", "data", kernelsize=3), ["'c'", "'kernel_size'"]),
    "dsl: no outputs": (lambda: net_of(Convolution("c", "data", kernel_size=3)), ["num_output"]),
    "dsl: a bottom": (
        lambda: net_of(ConvLayer("c", "dat", kernel=3, num_filters=3)),
        ["'c'", "'dat'", "'data'"],
    ),
    "dsl: a shape in words": (lambda: RDDLayer("data", shape="3x8x8"), ["'data'", "list of sizes"]),
    "dsl: a name for a layer": (lambda: net_of("data"), ["'data'", "ConvLayer"]),
    "dsl: a pooling": (
        lambda: PoolLayer("p", "data", pool="maximum", kernel=2),
        ["'p'", "'maximum'", "'max'"],
    ),
    "dsl: an activation": (
        lambda: ActivationLayer("a", "x", activation="rellu"),
        ["'a'", "'rellu'", "'relu'"],
    ),
    "dsl: labels of another batch": (
        lambda: net_of(
            RDDLayer("label", shape=[4]),
            LinearLayer("ip", "data", num_outputs=2),
            SoftmaxWithLoss("loss", ["ip", "label"]),
        ),
        ["'loss'", "1 x 2 and 4"],
    ),
    "solver: a field": (lambda: solver(base_lrr=0.1), ["'base_lrr'", "'base_lr'"]),
    "solver: a type": (lambda: solver(type="Adamm"), ["'Adamm'", "'Adam'"]),
    "solver: a rate in words": (lambda: solver(base_lr="fast"), ["base_lr", "'fast'"]),
    "solver: no step": (
        lambda: Net(solver(lr_policy="step", gamma=0.1)),
        ["stepsize is 0", "'step'"],
    ),
    "a model of the zoo": (lambda: models.net("lenett"), ["'lenett'", "'lenet'"]),
    # -- pycaffe
    "caffe: an input": (
        lambda: deploy().forward(dta=np.zeros((2, 3, 8, 8))),
        ["dta", "(data)"],
    ),
    "caffe: a shape": (
        lambda: deploy().forward(data=np.zeros((2, 3, 9, 8))),
        ["'data'", "2 x 3 x 9 x 8", "2 x 3 x 8 x 8"],
    ),
    "caffe: an end": (lambda: deploy().forward(end="fc7"), ["'fc7'"]),
    "caffe: no phase": (lambda: caffe.Net("deploy.prototxt"), ["phase", "caffe.TEST"]),
    "caffe: a state": (
        lambda: caffe.get_solver("solver.prototxt").restore("x.solverstate"),
        ["x.solverstate", "no such file"],
    ),
    "caffe: a picture": (lambda: caffe.io.load_image("b.jpg"), ["b.jpg", "does not exist"]),
}

TRAIN = "train -solver solver.prototxt"
PREDICT = "predict -model deploy.prototxt -weights deploy.caffemodel"
COMMANDS: dict[str, list[str]] = {
    "trian -solver solver.prototxt": ["'trian'", "'train'"],
    "train": ["give SOLVER or -solver"],
    f"{TRAIN} --dta train.npz": ["'--dta'", "'--data'"],
    "train -solver slover.prototxt": ["slover.prototxt", "did you mean 'solver.prototxt'?"],
    TRAIN: ["'data', 'label'", "--data"],
    f"{TRAIN} --data trian.npz": ["trian.npz", "did you mean 'train.npz'?"],
    f"{TRAIN} --data data.npy": ["'label'", "'data'"],
    f"{TRAIN} --data train.npz --workers two": ["--workers", "'two'", "whole number"],
    f"{TRAIN} --data train.npz --strategy averaging:steps=many": ["steps", "a number", "'many'"],
    f"{TRAIN} --data train.npz --out missing/net.caffemodel": ["missing/net.caffemodel", "folder"],
    f"{TRAIN} --data train.npz --plot missing/p.svg": ["missing/p.svg", "folder"],
    f"{TRAIN} --data train.npz --plot p.txt": ["p.txt", ".svg"],
    f"{TRAIN} --data train.npz --epochs -3": ["--epochs", "'-3'"],
    "test -model net.prototxt -weights net.caffemodel": ["data, label", "--data"],
    "test -model net.prototxt": ["give -weights"],
    "test -model net.prototxt -weights nett.caffemodel --data train.npz": [
        "nett.caffemodel",
        "did you mean 'net.caffemodel'?",
    ],
    PREDICT: ["give INPUT"],
    "predict -model deploy.prototxt a.jpg": ["give -weights"],
    f"{PREDICT} nothing": ["nothing", "no image"],
    f"{PREDICT} a.jpg --labels names.txt": ["names.txt"],
    f"{PREDICT} a.jpg --resize big": ["--resize", "'big'"],
    f"{PREDICT} a.jpg --crop 227": ["227 x 227", "'data'", "3 x 8 x 8"],
    f"{PREDICT} a.jpg --out missing/x.csv": ["missing/x.csv", "cannot be written"],
    "features -model deploy.prototxt -weights deploy.caffemodel a.jpg --outputs ip": ["give --out"],
    "show nett.prototxt": ["nett.prototxt", "did you mean 'net.prototxt'?"],
    "draw net.prototxt net.jpgg": ["net.jpgg", ".svg"],
    "models lenett": ["'lenett'", "'lenet'"],
    "models lenet --out net.prototxt": ["net.prototxt", "is a file"],
    "time -model net.prototxt -iterations none": ["-iterations", "'none'"],
    "convert images pictures out_lmdb": ["pictures", "is a folder"],
    "convert records pixels.npz train_lmdb": ["train_lmdb", "exists already"],
    "convert mnist train.npz a.jpg new_lmdb": ["train.npz", "MNIST"],
    "convert recrods train.npz x": ["'recrods'", "'records'"],
    "convert snapshot nosnaps x.caffemodel": ["nosnaps", "no snapshot"],
    "export net.prototxt net.onnx": ["give -weights"],
    "upgrade net.prototxt missing/new.prototxt": ["missing/new.prototxt", "cannot be written"],
    "report runs/none": ["runs/none", "does not exist"],
    "report a.jpg": ["a.jpg", "no text"],
    "plan -solver solver.prototxt --workers a,b": ["--workers", "'a,b'"],
    "run missing.py": ["missing.py", "no such file"],
    "census nowhere": ["nowhere", "no such folder"],
    "completion nushell": ["'nushell'", "bash"],
}


DOUBTS: dict[str, tuple[Made, str]] = {
    "softmax twice": (lambda: stepped((X, Y), squashed("Softmax")), "'act' .Softmax. makes prob"),
    "scores cut off": (lambda: stepped((X, Y), squashed("ReLU")), "'act' .ReLU. cuts them off"),
    "one class": (
        lambda: stepped((X, Y * 0), bare("num_output: 2", "num_output: 1")),
        "at least 2 classes, and there is 1",
    ),
    "no rate": (lambda: stepped((X, Y), solver(base_lr=0)), "base_lr is 0"),
    "a rate below 0": (lambda: stepped((X, Y), solver(base_lr=-1)), "base_lr is -1"),
    "momentum": (lambda: stepped((X, Y), solver(momentum=2)), "momentum is 2"),
    "decay": (lambda: stepped((X, Y), solver(weight_decay=-1)), "weight_decay is -1"),
    "nothing learns": (lambda: trained(lr_mult={"*": 0}), "no layer learns: each lr_mult is 0"),
    "labels from 1 on": (
        lambda: trained((X, Y + 1), bare("num_output: 2", "num_output: 3")),
        "labels run from 1 to 2, and the net's 3 classes are numbered from 0",
    ),
    "labels of one class": (lambda: trained((X, Y * 0)), "all labels are 0"),
    "validation of another size": (
        lambda: trained((X * 255, Y), validation=(X, Y)),
        "'data' runs from .* in the training data and from .* in the validation data",
    ),
    "constants": (lambda: trained((X * 0, Y)), "'data' holds 0 alone in the first 5 records"),
    "fewer classes": (lambda: classes("ab", 3), "has 2 classes, and the net's loss has 3"),
    "an empty class": (lambda: classes("ab", 2, empty="a"), "class 'a' has no image"),
    "folders of folders": (lambda: classes("ab", 2, "cd"), "each with the folders 'c', 'd'"),
}


def squashed(kind: str) -> SolverParams:
    before, after = NET.splitlines()[-1].split('bottom: "ip"')
    layer = f'layer {{ name: "act" type: "{kind}" bottom: "ip" top: "act" }}'
    return bare(NET.splitlines()[-1], f'{layer} {before} bottom: "act" {after}')


@pytest.mark.parametrize("name", DOUBTS)
def test_what_is_said(name):
    doubted, said = DOUBTS[name]
    with pytest.warns(UserWarning, match=said):
        doubted()


def test_there_are_more_than_a_hundred():
    assert len(PYTHON) + len(COMMANDS) > 120


@pytest.mark.parametrize("name", PYTHON)
@pytest.mark.filterwarnings("ignore")
def test_in_python(name):
    mistake, names = PYTHON[name]
    start = time.process_time()
    with pytest.raises(SparkNetError) as caught:
        mistake()
    assert judge(str(caught.value), names) == [], caught.value
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize("words", COMMANDS)
def test_on_the_command_line(words, capsys):
    start = time.process_time()
    try:
        status = main(words.split())
    except SystemExit as left:
        status = int(left.code or 0)
    assert status in (1, 2)
    told = capsys.readouterr().err.strip()
    lines = told.splitlines()
    assert len(lines) <= 2, told
    assert lines[0].startswith("sparknet")
    assert judge(" ".join(lines), COMMANDS[words]) == [], told
    assert time.process_time() - start < SECONDS
