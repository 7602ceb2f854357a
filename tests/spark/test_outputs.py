"""What blobs become in a DataFrame, whatever axis their records lie on."""

import numpy as np
import pytest

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.predict.detections import Detections
from sparknet.predict.output_columns import Classes, Scalar
from sparknet.predict.request import Request, find_outputs
from sparknet.spark import SparkModel
from sparknet.spark.predict.transform import spark_type


def detector(batch: int) -> Net:
    """Four priors; the four values of a record are the scores of class 1 at each."""
    text = f"""
    layer {{ name: "in" type: "Input" top: "data" top: "loc" input_param {{
      shape {{ dim: [{batch}, 8] }} shape {{ dim: [{batch}, 16] }} }} }}
    layer {{ name: "fixed" type: "DummyData" top: "map" top: "image" dummy_data_param {{
      shape {{ dim: [1, 1, 2, 2] }} shape {{ dim: [1, 3, 20, 20] }} }} }}
    layer {{ name: "priors" type: "PriorBox" bottom: "map" bottom: "image" top: "priors"
      prior_box_param {{ min_size: 4 }} }}
    layer {{ name: "found" type: "DetectionOutput" bottom: "loc" bottom: "data" bottom: "priors"
      top: "found" detection_output_param {{ num_classes: 2 confidence_threshold: 0.5
      background_label_id: 0 nms_param {{ nms_threshold: 0.4 }} }} }}
    """
    return Net(text)


SCORES = np.array(
    [[0, 0, 0, 0], [0.9, 0, 0.8, 0], [0, 0, 0, 0], [0, 0, 0, 0.7], [0.6, 0.6, 0.6, 0.9]]
)


def detections(scores):
    """A batch: what is not class 1 is background; boxes are the priors themselves."""
    conf = np.stack([1 - scores, scores], 2).reshape(len(scores), -1)
    return {"data": conf, "loc": np.zeros((len(scores), 16))}


def listed(net, batch, **keywords):
    """The column's values over all records, so many at a time."""
    (output,) = find_outputs(net.tested, {"found": "boxes"}, Request(**keywords))
    column = output.collect(len(SCORES))
    for begin in range(0, len(SCORES), batch):
        scores = SCORES[begin : begin + batch]
        made = net.forward(detections(scores), ["found"])["found"]
        at = slice(begin, begin + len(scores))
        column.put(at, output.rows(made, len(scores)), None)
    return list(column.arrow(np.ones(len(SCORES), bool)).to_pylist())


def test_detections_are_structs_whatever_the_batch():
    pytest.importorskip("pyarrow")
    expected = [[0.9, 0.8], [0.7], [0.9, 0.6, 0.6, 0.6]]
    found = listed(detector(2), 5)
    assert [len(row) for row in found] == [0, 2, 0, 1, 4]
    for row, scores in zip([row for row in found if row], expected, strict=True):
        fields = ["label", "name", "score", "xmin", "ymin", "xmax", "ymax"]
        assert [list(one) for one in row] == [fields] * len(row)
        assert [(one["label"], one["name"]) for one in row] == [(1, None)] * len(row)
        np.testing.assert_allclose([one["score"] for one in row], scores, rtol=1e-6)
    # The first prior: 4 x 4 pixels about the centre of the first of 2 x 2 cells of 10 pixels.
    box = [found[1][0][side] for side in ("xmin", "ymin", "xmax", "ymax")]
    np.testing.assert_allclose(box, [0.15, 0.15, 0.35, 0.35], atol=1e-6)
    for batch in (1, 2, 3):
        assert listed(detector(3), batch) == found


def test_detections_have_the_names_of_a_label_map(tmp_path):
    pytest.importorskip("pyarrow")
    labels = tmp_path / "labelmap.prototxt"
    labels.write_text("""item { name: "none" label: 0 display_name: "background" }
      item { name: "n02" label: 1 display_name: "dog" }""")
    found = listed(detector(2), 2, labels=str(labels))
    assert {one["name"] for row in found for one in row} == {"dog"}
    assert {one["name"] for row in listed(detector(2), 2, labels=["x"]) for one in row} == {None}


@pytest.mark.parametrize("batch", [1, 4])
def test_the_type_of_detections_is_that_of_no_shape(batch):
    """One box, many or none were found last: the column is the same."""
    pytest.importorskip("pyspark")
    net = detector(batch)
    model = SparkModel(net)
    numbers = ",".join(f"{name}:float" for name in ("score", "xmin", "ymin", "xmax", "ymax"))
    for last in (SCORES[:1], SCORES[1:2], SCORES):
        net.forward(detections(last))
        (output,) = model.result_columns()
        assert output == Detections("found", "found")
        kind = spark_type(output).simpleString()
        assert kind == f"array<struct<label:int,name:string,{numbers}>>"
    with pytest.raises(
        SparkError, match="best needs an output with one row per record: 'found' has any number"
    ):
        model.result_columns(best="class")


CLASSES = """
layer { name: "in" type: "Input" top: "scores" input_param { shape { dim: [2, SHAPE] } } }
layer { name: "out" type: "Power" bottom: "scores" top: "out" }
"""


def collected(text, values, batch=2, **keywords):
    """The Arrow column of the net's only output, so many records at a time."""
    net = Net(text)
    (output,) = find_outputs(net.tested, {"out": "out"}, Request(**keywords))
    column = output.collect(len(values))
    for begin in range(0, len(values), batch):
        part = values[begin : begin + batch]
        made = net.forward({"scores": part})["out"]
        column.put(slice(begin, begin + len(part)), output.rows(made, len(part)), None)
    return column.arrow(np.arange(len(values)) != 1)


def test_the_best_classes_come_with_their_names():
    pytest.importorskip("pyarrow")
    scores = np.array([[0.1, 0.5, 0.4], [1, 0, 0], [0.2, 0.2, 0.6]], np.float32)
    names = ["ant", "bee", "cow"]
    made = collected(CLASSES.replace("SHAPE", "3"), scores, top=2, labels=names).to_pylist()
    assert made[1] is None
    assert [[one["name"] for one in row] for row in made[::2]] == [["bee", "cow"], ["cow", "ant"]]
    assert [[one["label"] for one in row] for row in made[::2]] == [[1, 2], [2, 0]]
    np.testing.assert_allclose([one["score"] for one in made[0]], [0.5, 0.4], rtol=1e-6)
    with pytest.raises(SparkError, match="there are 2 labels for the 3 classes of 'out'"):
        collected(CLASSES.replace("SHAPE", "3"), scores, top=2, labels=names[:2])
    with pytest.raises(SparkError, match="top needs an output with one value per class, not 'out'"):
        collected(CLASSES.replace("SHAPE", "3, 2, 2"), scores, top=2)


@pytest.mark.parametrize("channels", [1, 3])
def test_masks_are_bytes_or_runs(channels):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    wanted = rng.integers(0, 3, (3, 4, 5))
    values = wanted[:, None] if channels == 1 else np.eye(3)[wanted].transpose(0, 3, 1, 2)
    text = CLASSES.replace("SHAPE", f"{channels}, 4, 5")
    whole = collected(text, values, mask="bytes").to_pylist()
    runs = collected(text, values, mask="runs").to_pylist()
    assert whole[1] is runs[1] is None
    for number in (0, 2):
        one, other = whole[number], runs[number]
        assert [one["height"], one["width"]] == [other["height"], other["width"]] == [4, 5]
        np.testing.assert_array_equal(np.frombuffer(one["data"], np.uint8), wanted[number].ravel())
        flat = [run["label"] for run in other["runs"] for _ in range(run["length"])]
        assert flat == wanted[number].ravel().tolist()
        pairs = zip(other["runs"], other["runs"][1:], strict=False)
        assert all(run["label"] != after["label"] for run, after in pairs)
    if channels == 1:
        with pytest.raises(SparkError, match="blob 'out' has a class outside 0 to 255"):
            collected(text, values + 300, mask="bytes")
    with pytest.raises(SparkError, match="mask needs an output of classes x height x width"):
        collected(CLASSES.replace("SHAPE", "3"), values[:, 0, 0, :3], mask="runs")


def test_other_pictures_change_no_type():
    """A net of convolutions has seen pictures of another size."""
    net = Net("""
    layer { name: "in" type: "Input" top: "data" input_param { shape { dim: [2, 1, 3, 3] } } }
    layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
      convolution_param { num_output: 1 kernel_size: 3 } }""")
    before = find_outputs(net.tested, {"conv": "conv"})
    net.forward({"data": np.zeros((7, 1, 9, 9))})
    assert find_outputs(net.tested, {"conv": "conv"}) == before == [Scalar("conv", "conv")]


SENTENCES = """
layer { name: "in" type: "Input" top: "words" top: "cont" top: "label" input_param {
  shape { dim: [4, 3] } shape { dim: [4, 3] } shape { dim: 3 } } }
layer { name: "embed" type: "Embed" bottom: "words" top: "vectors" embed_param {
  num_output: 5 input_dim: 9 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "lstm" type: "LSTM" bottom: "vectors" bottom: "cont" top: "lstm"
  recurrent_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "cut" type: "Slice" bottom: "lstm" top: "early" top: "last"
  slice_param { axis: 0 slice_point: 3 } }
layer { name: "flat" type: "Reshape" bottom: "last" top: "flat"
  reshape_param { shape { dim: [-1, 6] } } }
layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "silence" type: "Silence" bottom: "early" }
MORE
"""
PROB = 'layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }'
LOSS = 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }'


def test_each_output_has_its_own_record_axis():
    net = Net(SENTENCES.replace("MORE", PROB), seed=1)
    found = find_outputs(net.tested, {name: name for name in ("prob", "lstm", "vectors")})
    assert [output.axis for output in found] == [0, 1, 1]
    assert [output.blob for output in SparkModel(net).result_columns()] == ["prob"]
    with pytest.raises(
        SparkError, match=r"blob 'loss' is \(\): it has no row for each of 3 records"
    ):
        find_outputs(Net(SENTENCES.replace("MORE", LOSS)).tested, {"loss": "loss"})


def test_sequences_to_classes_and_detections_on_spark(session):
    net = Net(SENTENCES.replace("MORE", LOSS), seed=1)
    rng = np.random.default_rng(0)
    words, cont = rng.integers(0, 9, (11, 4)), np.tile([0, 1, 1, 1], (11, 1))
    rows = [(n, w.tolist(), c.tolist()) for n, (w, c) in enumerate(zip(words, cont, strict=True))]
    data = session.createDataFrame(rows, "n int, words array<int>, cont array<int>").coalesce(1)
    predicted = SparkModel(net).transform(data, ["ip", "lstm"], best="guess")
    made = predicted.orderBy("n").collect()
    wanted = net.forward({"words": words, "cont": cont}, ["ip", "lstm"])
    np.testing.assert_allclose([row.ip for row in made], wanted["ip"], rtol=1e-4, atol=1e-6)
    sequences = wanted["lstm"].transpose(1, 0, 2).reshape(11, -1)
    np.testing.assert_allclose([row.lstm for row in made], sequences, rtol=1e-4, atol=1e-6)
    assert [row.guess for row in made] == wanted["ip"].argmax(1).tolist()

    columns = detections(SCORES)
    boxes = [(n, columns["data"][n].tolist(), columns["loc"][n].tolist()) for n in range(5)]
    data = session.createDataFrame(boxes, "n int, data array<double>, loc array<double>")
    model = SparkModel(detector(2))
    made = model.transform(data.coalesce(1), ["found"]).orderBy("n").collect()
    found = [[one.asDict() for one in row.found] for row in made]
    assert found == listed(detector(5), 5)


def test_of_equal_classes_the_lower_label_comes_first():
    labels, scores = Classes("prob", "best", top=3).parts(np.full((2, 500), 0.002, np.float32))
    assert labels.tolist() == [[0, 1, 2]] * 2
    assert scores.shape == (2, 3)
