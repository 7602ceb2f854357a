import gzip
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparknet.cli import main
from sparknet.loaders import Blocks, Datums
from sparknet.loaders.lmdb import LMDB
from sparknet.proto import caffe_pb2, read_blob
from tests.goldens import GOLDENS
from tests.layers.host.nets import images, lmdb, net, passes
from tests.loaders.test_image_files import png, tar
from tests.loaders.test_mnist import write_mnist


def _records(path: Path) -> list[tuple[bytes, caffe_pb2.Datum]]:
    with LMDB(str(path)) as records:
        return [(key, caffe_pb2.Datum.FromString(value)) for key, value in records]


def test_mnist(tmp_path, capsys):
    pixels, labels = images(6, 4, 5), [5, 0, 4, 1, 9, 2]
    files = write_mnist(tmp_path, pixels, labels, packed=True)
    out, mean = tmp_path / "db", tmp_path / "mean"
    call = ["convert", "mnist", *files, str(out), "--skip", "1", "--take", "4"]
    assert main([*call, "--mean", str(mean)]) == 0
    found = _records(out)
    assert [key for key, _ in found] == [b"%08d" % n for n in range(4)]
    assert [datum.label for _, datum in found] == labels[1:5]
    assert [datum.data for _, datum in found] == [image.tobytes() for image in pixels[1:5]]
    assert {(d.channels, d.height, d.width) for _, d in found} == {(1, 4, 5)}
    np.testing.assert_allclose(read_blob(mean)[0, 0], pixels[1:5].mean(0), rtol=1e-6)
    assert "4 records" in capsys.readouterr().err
    assert main(call) == 1
    assert "exists already" in capsys.readouterr().err


def test_ten_thousand_digits(tmp_path, mnist):
    """What a LeNet is trained on: two LMDBs, which LMDB itself reads."""
    files = [str(path) for path in mnist]
    for name, part in (("train", ["--take", "300"]), ("test", ["--skip", "300", "--take", "50"])):
        assert main(["convert", "mnist", *files, str(tmp_path / name), *part]) == 0
    made = net(lmdb(str(tmp_path / "train"), 100, "scale: 0.00390625"))
    data = passes(made, 1)[0]
    assert data.shape == (100, 1, 28, 28)
    assert data.min() == 0
    assert 0.9 < data.max() < 1
    labels = gzip.decompress(mnist[1].read_bytes())[8:108]
    assert made.blobs["label"].data.tolist() == list(labels)
    library = pytest.importorskip("lmdb")
    with library.open(str(tmp_path / "test"), readonly=True, lock=False) as environment:
        assert environment.stat()["entries"] == 50


def test_cifar10(tmp_path):
    data = images(3, 3073)
    data.tofile(tmp_path / "batch")
    assert main(["convert", "cifar10", str(tmp_path / "batch"), str(tmp_path / "db")]) == 0
    found = _records(tmp_path / "db")
    assert [datum.label for _, datum in found] == data[:, 0].tolist()
    assert [datum.data for _, datum in found] == [row[1:].tobytes() for row in data]


def test_layers_read_what_lies_in_the_folder(tmp_path):
    """LevelDBs are not written: a net that names one reads the LMDB that is there."""
    data = images(3, 3073)
    data.tofile(tmp_path / "batch")
    out = str(tmp_path / "db")
    assert main(["convert", "cifar10", str(tmp_path / "batch"), out]) == 0
    read = net(lmdb(out, 3, "").replace("LMDB", "LEVELDB"))
    assert passes(read, 1)[0].reshape(3, -1).tolist() == data[:, 1:].tolist()


def _pictures(folder: Path, pixels: np.ndarray) -> list[str]:
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{number}.png")
    (folder / "list").write_text("".join(f"{n}.png {n + 5}\n" for n in range(len(pixels))))
    return ["convert", "images", str(folder / "list"), str(folder / "db"), "--root", str(folder)]


def test_images(tmp_path):
    pixels = images(3, 4, 5, 3)
    assert main(_pictures(tmp_path, pixels)) == 0
    found = _records(tmp_path / "db")
    assert [key for key, _ in found] == [b"%08d_%d.png" % (n, n) for n in range(3)]
    assert [datum.label for _, datum in found] == [5, 6, 7]
    for (_, datum), image in zip(found, pixels, strict=True):
        assert datum.data == image[..., ::-1].transpose(2, 0, 1).tobytes()


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        (["--gray"], (1, 4, 5)),
        (["--resize", "6x3"], (3, 6, 3)),
        (["--gray", "--resize", "2x2"], (1, 2, 2)),
    ],
)
def test_image_options(options, shape, tmp_path):
    assert main([*_pictures(tmp_path, images(2, 4, 5, 3)), *options]) == 0
    for _, datum in _records(tmp_path / "db"):
        assert (datum.channels, datum.height, datum.width) == shape
        assert len(datum.data) == np.prod(shape)


def test_encoded_and_shuffled(tmp_path):
    call = _pictures(tmp_path, images(20, 4, 5, 3))
    assert main([*call, "--encoded", "--shuffle", "--seed", "3"]) == 0
    found = _records(tmp_path / "db")
    order = [datum.label - 5 for _, datum in found]
    assert sorted(order) == list(range(20)) != order
    for number, (_, datum) in zip(order, found, strict=True):
        assert datum.encoded
        assert datum.data == (tmp_path / f"{number}.png").read_bytes()


def test_images_that_cannot_be_used(tmp_path, capsys):
    call = _pictures(tmp_path, images(4, 4, 5, 3))
    (tmp_path / "1.png").write_bytes(b"nothing")
    (tmp_path / "2.png").unlink()
    assert main(call) == 1
    assert [datum.label for _, datum in _records(tmp_path / "db")] == [5, 8]
    said = capsys.readouterr().err
    assert "1.png: is no image" in said
    assert "2.png: does not exist" in said
    assert "2 images were left out" in said
    Image.fromarray(images(1, 6, 6, 3)[0]).save(tmp_path / "1.png")
    other = [*call[:3], str(tmp_path / "other"), *call[4:]]
    assert main([*other, "--check-size"]) == 1
    assert "1.png: is (3, 6, 6)" in capsys.readouterr().err
    assert not (tmp_path / "other" / "data.mdb").exists()
    assert main([*other, "--encoded", "--gray"]) == 1


def test_tars(tmp_path, capsys):
    names = {"cat/1.png": png(1), "cat/2.png": b"nothing", "dog/3.png": png(3), "dog/4.png": png(4)}
    path, out, mean = tar(tmp_path / "some.tar", names), tmp_path / "db", tmp_path / "mean"
    assert main(["convert", "tars", str(path), str(out), "--mean", str(mean)]) == 1
    said = capsys.readouterr()
    assert said.out == "0 cat\n1 dog\n"
    assert "some.tar:cat/2.png: is no image" in said.err
    assert "1 image was left out" in said.err
    found = _records(out)
    assert [datum.label for _, datum in found] == [0, 1, 1]
    assert [datum.data[-1] for _, datum in found] == [1, 3, 4]
    np.testing.assert_allclose(read_blob(mean)[0, :, 0, 0], [2, 1, 8 / 3], rtol=1e-6)


def test_tars_with_labels_to_blocks(tmp_path):
    path = tar(tmp_path / "some.tar", {f"{n}.png": png(n) for n in range(9)})
    (tmp_path / "list").write_text("".join(f"{n}.png {n + 10}\n" for n in range(9)))
    call = ["convert", "tars", str(path), str(tmp_path / "out"), "--to", "blocks"]
    call += ["--labels", str(tmp_path / "list"), "--shuffle", "--seed", "2", "--resize", "2x3"]
    assert main([*call, "--mean", str(tmp_path / "mean")]) == 0
    blocks = Blocks(tmp_path / "out")
    batch = blocks.take(slice(None))
    assert blocks.columns["data"].shape == (3, 2, 3)
    assert sorted(batch["label"]) == list(range(10, 19)) != batch["label"].tolist()
    assert (batch["data"][:, 2, 0, 0] + 10 == batch["label"]).all()
    assert read_blob(tmp_path / "mean")[0, 2, 0, 0] == 4


def test_images_to_blocks(tmp_path, capsys):
    pixels = images(3, 4, 5, 3)
    call = [*_pictures(tmp_path, pixels), "--to", "blocks"]
    assert main(call) == 0
    batch = Blocks(tmp_path / "db").take([2, 0])
    np.testing.assert_array_equal(batch["data"], pixels[[2, 0], ..., ::-1].transpose(0, 3, 1, 2))
    assert batch["label"].tolist() == [7, 5]
    assert main([*call, "--encoded"]) == 1
    Image.fromarray(images(1, 6, 6, 3)[0]).save(tmp_path / "1.png")
    assert main(call) == 1
    assert "needs images of one size" in capsys.readouterr().err


def test_any_records(tmp_path, capsys):
    """From numpy to blocks, from blocks to LMDB, with numbers that are no bytes."""
    data = np.random.default_rng(0).normal(size=(7, 2, 3, 4)).astype(np.float32)
    np.savez(tmp_path / "some.npz", data=data, label=np.arange(7), weight=np.ones(7))
    blocks, db = str(tmp_path / "blocks"), str(tmp_path / "db")
    call = ["convert", "records", str(tmp_path / "some.npz"), blocks, "--to", "blocks"]
    assert main([*call, "--skip", "1", "--take", "5"]) == 0
    assert sorted(Blocks(blocks).columns) == ["data", "label", "weight"]
    assert main(["convert", "records", blocks, db, "--take", "3"]) == 0
    batch = Datums(db).take(slice(None))
    np.testing.assert_array_equal(batch["data"], data[1:4])
    assert batch["label"].tolist() == [1, 2, 3]
    assert "3 records" in capsys.readouterr().err
    np.savez(tmp_path / "flat.npz", data=np.zeros((3, 4)))
    assert main(["convert", "records", str(tmp_path / "flat.npz"), db + "2"]) == 1
    assert "use --to blocks" in capsys.readouterr().err
    files = write_mnist(tmp_path, images(3, 4, 5), [5, 0, 4], packed=True)
    assert main(["convert", "records", *files, str(tmp_path / "m"), "--to", "blocks"]) == 0
    assert Blocks(tmp_path / "m").take(slice(None))["label"].tolist() == [5, 0, 4]


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_mean(backend, tmp_path, capsys):
    data, out = GOLDENS / "data", tmp_path / "mean"
    call = ["convert", "mean", str(data / f"gray_{backend}"), str(out)]
    assert main([*call, "--backend", backend]) == 0
    said = capsys.readouterr().out
    assert main(call) == 0
    with np.load(data / "sources.npz") as sources:
        want = sources["gray/data"].mean(0)
    np.testing.assert_allclose(read_blob(out)[0], want, rtol=1e-6)
    assert said == capsys.readouterr().out == f"mean_value of channel 0: {want.mean():g}\n"


def test_wrong_use():
    for call in (["convert"], ["convert", "nosuch"], ["convert", "mnist", "a"]):
        with pytest.raises(SystemExit) as caught:
            main(call)
        assert caught.value.code == 2
