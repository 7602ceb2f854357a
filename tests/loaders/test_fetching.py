"""Downloads from a folder and from a server on this machine; nothing here leaves it."""

import hashlib
import io
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from benchmarks.digits import real
from sparknet.errors import FileError, SpecError
from sparknet.loaders.mnist_cifar10 import CIFAR10_FILES, DATASETS, Published, download, fetch
from tests.loaders.test_mnist import write_mnist

CONTENT = b"pixels" * 1000


def published(content: bytes, name: str = "some.bin") -> Published:
    digest = hashlib.sha256(content).hexdigest()
    return Published(f"https://nowhere.invalid/data/{name}", len(content), digest)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def source(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "some.bin").write_bytes(CONTENT)
    return tmp_path / "source"


@pytest.fixture
def server(source):
    handler = partial(Quiet, directory=str(source))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def test_a_file_from_a_server(tmp_path, server):
    path = fetch(published(CONTENT), tmp_path / "new" / "folder", server)
    assert path == tmp_path / "new" / "folder" / "some.bin"
    assert path.read_bytes() == CONTENT


def test_what_is_there_already_is_not_fetched_again(tmp_path, source):
    mirror = source.as_uri()
    path = fetch(published(CONTENT), tmp_path, mirror)
    (source / "some.bin").unlink()
    assert fetch(published(CONTENT), tmp_path, mirror) == path
    path.write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(FileError, match="cannot be downloaded"):
        fetch(published(CONTENT), tmp_path, mirror)
    (source / "some.bin").write_bytes(CONTENT)
    assert fetch(published(CONTENT), tmp_path, mirror).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT[:-1] + b"?", "is not what was published: its SHA-256 is"),
        (CONTENT[:-1], "is not what was published: not 6000 bytes"),
        (CONTENT * 999, "is not what was published: not 6000 bytes"),
        (b"", "is not what was published"),
    ],
    ids=["flipped", "short", "long", "empty"],
)
def test_other_content_never_gets_the_name(tmp_path, source, server, content, message):
    (source / "some.bin").write_bytes(content)
    for mirror in (server, source.as_uri()):
        with pytest.raises(FileError, match=message):
            fetch(published(CONTENT), tmp_path / "out", mirror)
        assert list((tmp_path / "out").iterdir()) == []


def test_places_that_cannot_be_reached(tmp_path, server):
    for mirror, message in (
        (server + "/nothing", "some.bin: cannot be downloaded: .*404"),
        ("http://127.0.0.1:1", "cannot be downloaded"),
        ("ftp://127.0.0.1", "is no address that can be fetched from"),
        ("not a url", "is no address"),
    ):
        with pytest.raises(FileError, match=message):
            fetch(published(CONTENT), tmp_path / "out", mirror)
    with pytest.raises(SpecError, match="no data set is called 'imagenet': there are mnist, cif"):
        download("imagenet", tmp_path)


def test_mnist(tmp_path, source, monkeypatch):
    files = []
    for part, labels in (("train", [1, 2, 3]), ("test", [4])):
        (tmp_path / part).mkdir()
        pixels = np.zeros((len(labels), 2, 2), np.uint8)
        for name, path in zip(
            "xy", write_mnist(tmp_path / part, pixels, labels, True), strict=True
        ):
            content = Path(path).read_bytes()
            (source / (part + name)).write_bytes(content)
            files.append(published(content, part + name))
    monkeypatch.setitem(DATASETS, "mnist", tuple(files))
    train, test = download("mnist", tmp_path / "out", source.as_uri())
    assert train.take(slice(None))["label"].tolist() == [1, 2, 3]
    assert test.take([0])["label"].tolist() == [4]


def test_cifar10(tmp_path, source, monkeypatch):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for number, name in enumerate(["readme.html", *CIFAR10_FILES]):
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            data = bytes([number]) + bytes(3072)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    (source / "c.tar.gz").write_bytes(packed.getvalue())
    monkeypatch.setitem(DATASETS, "cifar10", (published(packed.getvalue(), "c.tar.gz"),))
    for _ in range(2):
        train, test = download("cifar10", tmp_path / "out", source.as_uri())
        assert train.take(slice(None))["label"].tolist() == [1, 2, 3, 4, 5]
        assert test.take(slice(None))["label"].tolist() == [6]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["c.tar.gz", *CIFAR10_FILES]
    (source / "d.tar.gz").write_bytes(b"nothing")
    monkeypatch.setitem(DATASETS, "cifar10", (published(b"nothing", "d.tar.gz"),))
    with pytest.raises(FileError, match=r"d\.tar\.gz: cannot be unpacked"):
        download("cifar10", tmp_path / "other", source.as_uri())


@pytest.mark.skipif(real() is None, reason="drawn digits were never published: SPARKNET_MNIST")
def test_the_published_digests_are_those_of_the_real_files(tmp_path):
    folder = real()
    assert folder is not None
    for file in DATASETS["mnist"][2:]:
        assert fetch(file, tmp_path, folder.resolve().as_uri()).stat().st_size == file.size
