"""AnnotatedData and DetectionEvaluate: boxes with their images, and detections against them."""

import numpy as np
import pytest

from sparknet import Net
from sparknet.errors import LayerError, SolverError
from sparknet.layers.detection_evaluate import average_precisions, mean_average_precision
from sparknet.loaders import annotated
from sparknet.loaders.annotated import Annotated
from sparknet.loaders.augmentation import add_noise, bgr, distort, hsv
from sparknet.proto import caffe_pb2
from tests.caffe.gradient import build
from tests.caffe.layers.oracle import layer_text
from tests.layers.host.nets import database, images, net, passes, source

BOXES = [(3, 0, 0.25, 0.25, 0.5, 0.75, False), (7, 1, 0.5, 0.0, 1.0, 0.5, True)]


def record(pixels, boxes=BOXES):
    made = caffe_pb2.AnnotatedDatum(type=caffe_pb2.AnnotatedDatum.BBOX)
    made.datum.channels, made.datum.height, made.datum.width = pixels.shape
    made.datum.data = pixels.tobytes()
    for label, instance, x1, y1, x2, y2, hard in boxes:
        group = made.annotation_group.add(group_label=label)
        one = group.annotation.add(instance_id=instance)
        one.bbox.xmin, one.bbox.ymin, one.bbox.xmax, one.bbox.ymax = x1, y1, x2, y2
        one.bbox.difficult = hard
    return made.SerializeToString()


def layer(path: str, batch: int = 2, transform: str = "", options: str = "", tops: int = 2) -> str:
    return source(
        "AnnotatedData",
        tops,
        data_param=f"source: '{path}' backend: LMDB batch_size: {batch}",
        transform_param=transform,
        annotated_data_param=options,
    )


@pytest.fixture
def pictures():
    return images(3, 3, 8, 12)


def test_images_and_rows(tmp_path, pictures):
    path = database(
        tmp_path, [record(pictures[0]), record(pictures[1], BOXES[:1]), record(pictures[2], [])]
    )
    made = net(layer(path, 2, "mean_value: 10 scale: 0.5"))
    found = passes(made, 2)
    want = (pictures[[0, 1, 2, 0]].astype(np.float32) - 10) / 2
    np.testing.assert_array_equal(found.reshape(4, 3, 8, 12), want)
    rows = passes(net(layer(path, 3)), 1, "label")[0, 0, 0]
    assert rows.tolist() == [
        [0, 3, 0, 0.25, 0.25, 0.5, 0.75, 0],
        [0, 7, 1, 0.5, 0.0, 1.0, 0.5, 1],
        [1, 3, 0, 0.25, 0.25, 0.5, 0.75, 0],
    ]


def test_labels_of_yolo(tmp_path, pictures):
    path = database(tmp_path, [record(pictures[0]), record(pictures[1], [])])
    made = net(layer(path, 2, "", "yolo_data_type: 1 yolo_data_jitter: 0"))
    labels = passes(made, 1, "label")[0]
    assert labels.shape == (2, 1, 300, 5)
    assert labels[0, 0, :2].tolist() == [[2, 0.375, 0.5, 0.25, 0.5], [6, 0.75, 0.25, 0.5, 0.5]]
    assert not labels[0, 0, 2:].any()
    assert not labels[1].any()
    easy = net(layer(path, 1, "", "yolo_data_type: 1 yolo_data_jitter: 0 train_diffcult: false"))
    assert np.count_nonzero(passes(easy, 1, "label")[0, 0, 0, :, 0]) == 1


def test_jitter_cuts_less_than_it_may():
    rng = np.random.default_rng(0)
    parts = np.array([annotated.jittered(0.3, rng) for _ in range(200)])
    sizes = parts[:, 2:] - parts[:, :2]
    assert (parts >= 0).all()
    assert (parts <= 1 + 1e-9).all()
    assert sizes.min() >= 0.7
    assert 20 < np.count_nonzero((sizes == 1).all(1)) < 60


def test_no_box_is_a_row_of_minus_one(tmp_path, pictures):
    path = database(tmp_path, [record(pictures[0], [])])
    assert (passes(net(layer(path, 1)), 1, "label") == -1).all()


def test_boxes_move_with_the_crop(tmp_path, pictures):
    """The middle 4 x 6 pixels: shares from a quarter to three quarters on both axes."""
    path = database(tmp_path, [record(pictures[0])])
    made = net(layer(path, 1, "crop_h: 4 crop_w: 6"))
    np.testing.assert_array_equal(passes(made, 1)[0, 0], pictures[0][:, 2:6, 3:9])
    rows = made.blobs["label"].data[0, 0]
    np.testing.assert_allclose(rows[:, 3:7], [[0, 0, 0.5, 1], [0.5, 0, 1, 0.5]])


def test_mirrored_and_resized(tmp_path, pictures):
    path = database(tmp_path, [record(pictures[0])])
    text = layer(path, 1, "mirror: true resize_param { height: 8 width: 12 }")
    made = net(text)
    seen = set()
    for image in passes(made, 12)[:, 0]:
        turned = not np.array_equal(image, pictures[0])
        np.testing.assert_array_equal(image, pictures[0][:, :, ::-1] if turned else pictures[0])
        seen.add(turned)
    assert seen == {True, False}
    one = Annotated(
        pictures[0].transpose(1, 2, 0), np.array([[0.25, 0.25, 0.5, 0.75]]), np.zeros((1, 3))
    )
    transform = caffe_pb2.TransformationParameter(mirror=True)
    turned = [
        annotated.prepare(one, transform, [], np.random.default_rng(s), False).boxes
        for s in range(8)
    ]
    assert {tuple(map(float, boxes[0])) for boxes in turned} == {
        (0.25, 0.25, 0.5, 0.75),
        (0.5, 0.25, 0.75, 0.75),
    }


@pytest.mark.parametrize(
    ("mode", "size", "box"),
    [
        ("WARP", (6, 6), (0.25, 0.25, 0.5, 0.75)),
        ("FIT_LARGE_SIZE_AND_PAD", (6, 6), (0.25, 1 / 6 + 1 / 6, 0.5, 1 / 6 + 0.5)),
        ("FIT_SMALL_SIZE", (6, 9), (0.25, 0.25, 0.5, 0.75)),
    ],
)
def test_resize_modes(tmp_path, pictures, mode, size, box):
    path = database(tmp_path, [record(pictures[0], BOXES[:1])])
    made = net(
        layer(path, 1, f"resize_param {{ height: 6 width: 6 resize_mode: {mode} pad_value: 9 }}")
    )
    assert passes(made, 1).shape == (1, 1, 3, *size)
    np.testing.assert_allclose(made.blobs["label"].data[0, 0, 0, 3:7], box, atol=1e-6)
    if mode.startswith("FIT_LARGE"):
        assert (made.blobs["data"].data[0, :, 0] == 9).all()
        assert (made.blobs["data"].data[0, :, -1] == 9).all()


def test_an_expanded_image_shows_the_mean_around_it(pictures):
    transform = caffe_pb2.TransformationParameter(mean_value=[1, 2, 3])
    transform.expand_param.max_expand_ratio = 3
    one = Annotated(
        pictures[0].transpose(1, 2, 0),
        np.array([[0.25, 0.25, 0.5, 0.75]], np.float32),
        np.zeros((1, 3)),
    )
    made = annotated.prepare(one, transform, [], np.random.default_rng(3), True)
    high, wide, _ = made.image.shape
    assert (high, wide) > (8, 12)
    x1, y1, x2, y2 = made.boxes[0] * [wide, high, wide, high]
    np.testing.assert_allclose([x2 - x1, y2 - y1], [3, 4], rtol=1e-4)
    left, top = round(x1 - 3), round(y1 - 2)
    np.testing.assert_array_equal(made.image[top : top + 8, left : left + 12], one.image)
    outside = np.ones((high, wide), bool)
    outside[top : top + 8, left : left + 12] = False
    assert (made.image[outside] == [1, 2, 3]).all()


@pytest.mark.parametrize("least", [0.1, 0.5, 0.9])
def test_sampled_parts_meet_their_constraint(least):
    sampler = caffe_pb2.BatchSampler(max_sample=3, max_trials=200)
    sampler.sampler.min_scale, sampler.sampler.max_scale = 0.3, 1
    sampler.sampler.min_aspect_ratio, sampler.sampler.max_aspect_ratio = 0.5, 2
    sampler.sample_constraint.min_jaccard_overlap = least
    boxes = np.array([[0.1, 0.1, 0.8, 0.9]], np.float32)
    parts = annotated.samples([sampler], boxes, np.random.default_rng(0))
    assert len(parts) <= 3
    assert parts or least == 0.9
    for part in parts:
        assert 0 <= part[0] < part[2] <= 1 + 1e-9
        assert 0 <= part[1] < part[3] <= 1 + 1e-9
        wide = max(0, min(part[2], 0.8) - max(part[0], 0.1))
        high = max(0, min(part[3], 0.9) - max(part[1], 0.1))
        union = (part[2] - part[0]) * (part[3] - part[1]) + 0.7 * 0.8 - wide * high
        assert wide * high / union >= least - 1e-5


def test_emit_constraint(tmp_path, pictures):
    """The left half of the image is cut off; a box stays with its centre, or by its share."""
    one = Annotated(
        pictures[0], np.array([[0.4, 0, 0.7, 1], [0.2, 0, 0.6, 1]], np.float32), np.zeros((2, 3))
    )
    part = (0.5, 0.0, 1.0, 1.0)
    assert len(one.within(part).boxes) == 2
    assert len(one.within(part, caffe_pb2.EmitConstraint()).boxes) == 1
    share = caffe_pb2.EmitConstraint(emit_type="MIN_OVERLAP", emit_overlap=0.2)
    assert len(one.within(part, share).boxes) == 2


def test_distortion():
    image = images(1, 9, 11, 3)[0]
    nothing = distort(image, caffe_pb2.DistortionParameter(), np.random.default_rng(0))
    np.testing.assert_array_equal(nothing, image)
    how = caffe_pb2.DistortionParameter(brightness_prob=1, brightness_delta=32)
    changed = distort(image, how, np.random.default_rng(0)).astype(int) - image
    inside = (image > 32) & (image < 223)
    assert len(np.unique(changed[inside])) == 1
    np.testing.assert_allclose(bgr(*hsv(image)).astype(int), image, atol=6)
    assert [int(plane[0, 0]) for plane in hsv(np.array([[[0, 0, 255]]], np.uint8))] == [0, 255, 255]
    assert [int(plane[0, 0]) for plane in hsv(np.array([[[255, 0, 0]]], np.uint8))] == [
        120,
        255,
        255,
    ]


def test_noise():
    """Each option by a slow formula; grey pictures have one channel."""
    image = np.random.default_rng(2).integers(0, 256, (9, 11, 3), np.uint8)

    def noisy(pixels=image, **options):
        how = caffe_pb2.NoiseParameter(**options)
        return add_noise(pixels, how, np.random.default_rng(0)).astype(int)

    grey = image.astype(float) @ [0.114, 0.587, 0.299]
    assert abs(noisy(decolorize=True) - grey[:, :, None]).max() <= 0.51
    assert (noisy(inverse=True) == 255 - image).all()
    assert (noisy(posterize=True) == image // 64 * 64 + 32).all()
    assert (noisy(convert_to_hsv=True) == np.stack(hsv(image), -1)).all()
    crosses = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))
    weights = np.exp(-(np.arange(-3, 4) ** 2) / 4.5)
    weights /= weights.sum()
    wide = np.pad(image.astype(float), ((3, 3), (3, 3), (0, 0)), "reflect")
    eroded, blurred = noisy(erode=True), noisy(gauss_blur=True)
    for y, x in np.ndindex(9, 11):
        near = [image[y + j, x + i] for j, i in crosses if 0 <= y + j < 9 and 0 <= x + i < 11]
        assert (eroded[y, x] == np.min(near, 0)).all()
        part = wide[y : y + 7, x : x + 7] * np.outer(weights, weights)[:, :, None]
        assert abs(blurred[y, x] - part.sum((0, 1))).max() <= 0.51
    plane = np.array([[10, 10, 20, 30]], np.uint8)[:, :, None]
    assert noisy(plane, hist_eq=True).ravel().tolist() == [0, 0, 128, 255]
    flat = np.full((4, 4, 3), 90, np.uint8)
    assert abs(noisy(flat, hist_eq=True) - 90).max() <= 1
    assert abs(noisy(flat, jpeg=80) - 90).max() <= 2
    salted = noisy(flat, saltpepper=True, saltpepper_param={"fraction": 0.5, "value": [1, 2, 3]})
    marked = (salted == [1, 2, 3]).all(-1)
    assert 4 <= marked.sum() <= 8
    assert (salted[~marked] == 90).all()


@pytest.mark.parametrize(
    ("transform", "options", "message"),
    [
        ("noise_param { clahe: true }", "", "clahe and convert_to_lab are not supported"),
        (
            "noise_param { saltpepper: true saltpepper_param { value: 1 value: 2 } }",
            "",
            "one for each of 3 channels; there are 2",
        ),
        (
            "noise_param { saltpepper: true saltpepper_param { value: 1 fraction: 2 } }",
            "",
            "fraction must be from 0 to 1; it is 2",
        ),
        ("resize_param { height: 3 }", "", "needs height and width; they are 3, 0"),
        ("expand_param { max_expand_ratio: 0.5 }", "", "max_expand_ratio 0.5 is below 1"),
        ("", "batch_sampler { sampler { max_scale: 2 } }", "batch_sampler 0: scales"),
        ("", "yolo_data_type: 2", "yolo_data_type must be 0 or 1; it is 2"),
        ("", "yolo_data_type: 1 yolo_data_jitter: 1", "yolo_data_jitter must be"),
        ("mean_value: 1 mean_value: 2", "", "one for each of the 3 channels; there are 2"),
    ],
)
def test_refusals(tmp_path, pictures, transform, options, message):
    path = database(tmp_path, [record(pictures[0])])
    with pytest.raises(LayerError, match=message):
        net(layer(path, 1, transform, options))


def test_records_that_are_none(tmp_path):
    with pytest.raises(LayerError, match="is no AnnotatedDatum"):
        net(layer(database(tmp_path, [b"\xff\xff\xff"]), 1))


# -- DetectionEvaluate -----------------------------------------------------------------------

EVALUATE = "detection_evaluate_param { num_classes: 3 evaluate_difficult_gt: false }"
TRUTH = np.array(
    [[0, 1, 0, 0, 0, 0.5, 0.5, 0], [0, 1, 0, 0.6, 0.6, 1, 1, 1], [1, 2, 0, 0, 0, 1, 1, 0]],
    np.float32,
).reshape(1, 1, 3, 8)
FOUND = np.array(
    [
        [0, 1, 0.9, 0, 0, 0.5, 0.5],
        [0, 1, 0.8, 0, 0, 0.5, 0.45],
        [0, 1, 0.7, 0.6, 0.6, 1, 1],
        [0, 2, 0.6, 0, 0, 1, 1],
        [1, 2, 0.5, 0, 0, 1, 0.9],
        [1, -1, 0.5, 0, 0, 1, 0.9],
    ],
    np.float32,
).reshape(1, 1, 6, 7)


def test_right_and_wrong_detections():
    made = build(
        layer_text("DetectionEvaluate", EVALUATE, "d t"), {"d": FOUND, "t": TRUTH}, force=False
    )
    made.forward()
    want = [
        [-1, 1, 1, -1, -1],
        [-1, 2, 1, -1, -1],
        [0, 1, 0.9, 1, 0],
        [0, 1, 0.8, 0, 1],
        [0, 1, 0.7, 0, 0],
        [0, 2, 0.6, 0, 1],
        [1, 2, 0.5, 1, 0],
    ]
    np.testing.assert_allclose(made.blobs["y"].data[0, 0], want, rtol=1e-6)
    rows = np.array(want)
    assert average_precisions([rows]) == {1: 1.0, 2: 0.5}
    assert mean_average_precision([rows], "MaxIntegral") == 0.75
    with pytest.raises(SolverError, match="unknown ap_version 'VOC'"):
        mean_average_precision([rows], "VOC")


def in_pictures(boxes, size, pad):
    """Shares of a padded 100 x 100 picture as pixels of the picture of a size, box by box."""
    rows = np.array(boxes, np.float64)
    if pad:
        # 50 x 100 pixels became 50 x 100 with 25 empty rows above and below.
        rows[:, 1::2] = (rows[:, 1::2] * 100 - 25) / 50
    return np.clip(rows, 0, 1) * [size[1], size[0], size[1], size[0]]


@pytest.mark.parametrize("pad", ["", "FIT_LARGE_SIZE_AND_PAD"])
def test_detections_in_pixels(tmp_path, pad):
    """Boxes of a few pixels overlap more where pixels have a size; pictures follow a list."""
    (tmp_path / "sizes").write_text("a 50 100\nb 4 8\n")
    low, high = (0.4, 0.6) if pad else (0.2, 0.7)
    truth = np.array([[0, 1, 0, 0.1, low, 0.6, high, 0]], np.float32).reshape(1, 1, 1, 8)
    found = np.array([[0, 1, 0.9, 0.1, low, 0.4, high]], np.float32).reshape(1, 1, 1, 7)
    options = f"name_size_file: '{tmp_path / 'sizes'}' overlap_threshold: 0.66"
    if pad:
        options += f" resize_param {{ height: 100 width: 100 resize_mode: {pad} }}"
    text = EVALUATE.replace("}", f"{options} }}")
    made = build(
        layer_text("DetectionEvaluate", text, "d t"), {"d": found, "t": truth}, force=False
    )
    judged = []
    for size in ((50, 100), (4, 8), (50, 100)):
        made.forward()
        own, real = (in_pictures(b[0, 0, :, 3:7], size, pad)[0] for b in (found, truth))
        shared = (own[2] - own[0] + 1) / (real[2] - real[0] + 1)
        judged.append(shared >= 0.66)
        assert made.blobs["y"].data[0, 0, 2, 3:].tolist() == [judged[-1], not judged[-1]]
    assert judged == [False, True, False]
    inputs, other = {"d": found, "t": truth}, EVALUATE.replace("}", "name_size_file: '/no/such' }")
    with pytest.raises(LayerError, match="the name_size_file '/no/such' is no file"):
        build(layer_text("DetectionEvaluate", other, "d t"), inputs, force=False)
    (tmp_path / "sizes").write_text("a 50\n")
    with pytest.raises(LayerError, match="line 1 is no name with a height and a width"):
        build(layer_text("DetectionEvaluate", text, "d t"), inputs, force=False)


def test_detections_of_cascades(tmp_path):
    """Rows in pixels of the resized picture, whose size is a third bottom."""
    found = np.array(
        [
            [0, 10, 10, 29, 29, 1, 0.9],
            [0, 10, 10, 24, 29, 2, 0.8],
            [-1] * 7,
            [1, 5, 5, 9, 9, 2, 0.7],
        ],
        np.float32,
    )
    truth = np.array([[0, 10, 10, 29, 29, 1, 0, 1], [0, 10, 10, 29, 29, 2, 0, 0]], np.float32)
    sizes = np.array([[50, 50], [60, 40]], np.float32)
    inputs = {"d": found, "t": truth, "s": sizes}
    made = build(layer_text("DetectionEvaluate", EVALUATE, "d t s"), inputs, force=False)
    made.forward()
    want = [
        [-1, 1, 0, -1, -1],
        [-1, 2, 1, -1, -1],
        [0, 1, 0.9, 0, 0],
        [0, 2, 0.8, 1, 0],
        [1, 2, 0.7, 0, 1],
    ]
    np.testing.assert_allclose(made.blobs["y"].data[:, :, 0, 0], want, rtol=1e-6)
    # As pixels of a smaller picture the boxes overlap less than 0.74: 0.75 becomes 12 of 16.
    (tmp_path / "sizes").write_text("a 10 10\nb 60 40\n")
    options = f"overlap_threshold: 0.77 name_size_file: '{tmp_path / 'sizes'}'"
    text = EVALUATE.replace("}", f"{options} }}")
    made = build(layer_text("DetectionEvaluate", text, "d t s"), inputs, force=False)
    made.forward()
    rights = made.blobs["y"].data[2:, 3, 0, 0].tolist()
    scaled = [np.array(row[1:5]) / 5 for row in (found[1], truth[1])]
    area = [np.prod(box[2:] - box[:2] + 1) for box in scaled]
    assert rights == [0, area[0] / area[1] >= 0.77, 0]


@pytest.mark.parametrize(
    ("version", "want"),
    [
        ("Integral", (1 + 2 / 3) / 4),
        ("MaxIntegral", (1 + 2 / 3) / 4),
        ("11point", (3 * 1 + 3 * 2 / 3) / 11),
    ],
)
def test_average_precision(version, want):
    """Right, wrong, right, wrong of four: precisions 1, 1/2, 2/3, 1/2 at recalls 1/4, 1/4, 1/2."""
    scores = [(0.9, 1), (0.8, 0), (0.7, 1), (0.6, 0)]
    rows = [[-1, 1, 4, -1, -1], *([0, 1, score, right, 1 - right] for score, right in scores)]
    assert mean_average_precision([np.array(rows)], version) == pytest.approx(want)


def test_the_metric_of_a_test(tmp_path):
    """Net.test gives the mean average precision over all batches, not a mean of rows."""
    text = "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" '
        f"input_param {{ shape {{ dim: 1 dim: 1 "
        f"dim: {rows} dim: {width} }} }} }}\n"
        for name, rows, width in (("d", 6, 7), ("t", 3, 8))
    )
    made = Net(text + layer_text("DetectionEvaluate", EVALUATE, "d t", "map"))
    made.set_validation_data({"d": np.repeat(FOUND, 2, 0), "t": np.repeat(TRUTH, 2, 0)})
    assert made.test()["map"] == pytest.approx((1 + (1 / 3 + 1 / 2) / 2) / 2)
