from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.native.transform import resize_image
from tests.layers.host.nets import images, net, passes, source


def _list(folder: Path, pixels: np.ndarray) -> str:
    lines = []
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"an image {number}.png")
        lines.append(f"an image {number}.png {10 + number}\n")
    (folder / "list").write_text("".join(lines))
    return f"source: '{folder}/list' root_folder: '{folder}/'"


def _text(options: str, transform: str = "") -> str:
    return source("ImageData", image_data_param=options, transform_param=transform)


def test_order_labels_and_channels(tmp_path):
    pixels = images(5, 6, 7, 3)
    made = net(_text(_list(tmp_path, pixels) + " batch_size: 2", "scale: 0.5 mean_value: 3"))
    got = passes(made, 4).reshape(8, 3, 6, 7)
    want = (pixels[..., ::-1].transpose(0, 3, 1, 2).astype(np.float32) - 3) / 2
    np.testing.assert_array_equal(got, want[np.arange(8) % 5])
    assert made.blobs["label"].data.tolist() == [11, 12]


def test_grey_and_resized(tmp_path):
    pixels = images(2, 6, 7)
    options = _list(tmp_path, pixels) + " batch_size: 2 is_color: false new_height: 9 new_width: 4"
    made = net(_text(options))
    got = passes(made, 1)[0]
    assert got.shape == (2, 1, 9, 4)
    for one, image in zip(got, pixels, strict=True):
        np.testing.assert_array_equal(one[0], resize_image(image, 9, 4))


def test_shuffled_rounds(tmp_path):
    text = _text(_list(tmp_path, images(9, 3, 3, 3)) + " batch_size: 3 shuffle: true")
    rounds = passes(net(text, seed=2), 12, "label").reshape(4, 9)
    assert all(sorted(one) == list(range(10, 19)) for one in rounds)
    assert len({tuple(one) for one in rounds}) == 4
    np.testing.assert_array_equal(passes(net(text, seed=2), 12, "label").reshape(4, 9), rounds)


def test_rand_skip(tmp_path):
    options = _list(tmp_path, images(9, 3, 3, 3)) + " batch_size: 1 rand_skip: "
    firsts = {passes(net(_text(options + "4"), seed=s), 1, "label").item() for s in range(30)}
    assert firsts == {10, 11, 12, 13}
    with pytest.raises(LayerError, match="holds 9 images"):
        net(_text(options + "4000000000")).forward()


def test_images_of_several_sizes_one_at_a_time(tmp_path):
    for number, size in enumerate([(4, 5), (6, 3)]):
        Image.fromarray(images(1, *size, 3)[0]).save(tmp_path / f"{number}.png")
    (tmp_path / "list").write_text("0.png 0\n1.png 1\n")
    options = f"source: '{tmp_path}/list' root_folder: '{tmp_path}/' batch_size: "
    pool = """layer { name: 'p' type: 'ReLU' bottom: 'data' top: 'p' }"""
    made = net(_text(options + "1") + pool, caffe.TEST)
    for size in [(4, 5), (6, 3), (4, 5)]:
        assert made.forward()["p"].shape == (1, 3, *size)
    with pytest.raises(
        LayerError, match=r"1\.png: is 3 x 6 x 3; others of its batch are 3 x 4 x 5"
    ):
        net(_text(options + "2")).forward()


def test_damage_names_layer_and_file(tmp_path):
    options = _list(tmp_path, images(3, 40, 40, 3)) + " batch_size: 1"
    file = tmp_path / "an image 1.png"
    file.write_bytes(file.read_bytes()[:900])
    made = net(_text(options))
    made.forward()
    with pytest.raises(LayerError, match=r"layer 'src': ImageData: .*image 1\.png: is a damaged"):
        made.forward()
    file.unlink()
    with pytest.raises(LayerError, match=r"image 1\.png: does not exist"):
        made.forward()
