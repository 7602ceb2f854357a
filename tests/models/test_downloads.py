"""Weights are fetched once, by size and checksum, from servers that are slow, cut or wrong."""

import hashlib
import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sparknet import models
from sparknet.cli import main
from sparknet.errors import FileError, SpecError
from sparknet.models import downloads

BODY = bytes(range(256)) * 40
FILE = downloads.Download("net", "caffemodel", len(BODY), hashlib.sha256(BODY).hexdigest(), ())


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, path = self.server, self.path
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        server.requests.append((path, start))
        if path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/whole")
            self.end_headers()
            return
        if path == "/missing":
            self.send_error(404)
            return
        if path == "/unranged":
            start = 0
        body = {"/wrong": BODY[::-1], "/short": BODY[:99], "/long": BODY * 3}.get(path, server.body)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if path == "/cut":
            self.wfile.write(body[start : start + 4000])
            self.close_connection = True
            return
        if path == "/silent":
            server.released.wait(5)
            return
        self.wfile.write(body[start:])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARKNET_MODELS", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.released, server.body = [], threading.Event(), BODY
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def file_at(server, *paths):
    urls = tuple(f"{server.url}/{path}" for path in paths)
    return downloads.Download(FILE.model, FILE.kind, FILE.size, FILE.checksum, urls)


@pytest.mark.parametrize("paths", [["whole"], ["moved"], ["missing", "wrong", "short", "whole"]])
def test_the_first_right_file_is_kept(server, paths):
    path = downloads.fetch(file_at(server, *paths))
    assert path.read_bytes() == BODY
    assert path == downloads.cache_folder() / "net.caffemodel"
    count = len(server.requests)
    assert downloads.fetch(file_at(server, *paths)) == path
    assert len(server.requests) == count, "the file of the cache is used"
    path.write_bytes(BODY[:-1] + b"x")
    assert downloads.fetch(file_at(server, *paths)).read_bytes() == BODY, "and checked"


def test_a_download_goes_on_where_it_was_cut(server):
    with pytest.raises(FileError, match=r"ended after 4,000 of 10,240 bytes"):
        downloads.fetch(file_at(server, "cut"))
    assert downloads.fetch(file_at(server, "cut", "whole")).read_bytes() == BODY
    assert [start for _, start in server.requests] == [0, 4000, 8000]


def test_a_server_that_cannot_go_on_begins_again(server):
    with pytest.raises(FileError):
        downloads.fetch(file_at(server, "cut"))
    assert downloads.fetch(file_at(server, "unranged")).read_bytes() == BODY


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing", "404"),
        ("wrong", f"its sha256 is {hashlib.sha256(BODY[::-1]).hexdigest()}, not"),
        ("long", "more than 10,240 bytes"),
    ],
)
def test_another_file_is_refused(server, path, words):
    with pytest.raises(FileError, match=words) as caught:
        downloads.fetch(file_at(server, path))
    message = str(caught.value)
    assert f"{downloads.cache_folder() / 'net.caffemodel'}: could not be fetched" in message
    assert f"get the file of 10,240 bytes and sha256 {FILE.checksum} elsewhere" in message
    assert list(downloads.cache_folder().iterdir()) == []


def test_a_silent_server_is_left(server, monkeypatch):
    monkeypatch.setattr(downloads, "TIMEOUT", 1.0)
    assert downloads.fetch(file_at(server, "silent", "whole")).read_bytes() == BODY


def test_a_mirror_comes_first(server, monkeypatch):
    file = file_at(server, "missing")
    monkeypatch.setattr(downloads, "downloads", lambda: {"net": (file,)})
    assert models.weights("net", mirror=f"{server.url}/folder/") == {
        "caffemodel": downloads.cache_folder() / "net.caffemodel"
    }
    assert server.requests == [("/folder/net.caffemodel", 0)]


def test_the_command_prints_the_files(server, monkeypatch, capsys):
    monkeypatch.setattr(downloads, "downloads", lambda: {"net": (file_at(server, "whole"),)})
    assert main(["models", "net", "--weights"]) == 0
    assert capsys.readouterr().out == f"{downloads.cache_folder() / 'net.caffemodel'}\n"
    assert main(["models", "--weights"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["net", "0.0", server.url[7:]]
    assert main(["models", "net", "--mirror", server.url]) == 2
    assert "--mirror goes with --weights" in capsys.readouterr().err


def test_only_http_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARKNET_MODELS", str(tmp_path))
    (tmp_path / "here").write_bytes(BODY)
    with pytest.raises(FileError, match="only http and https"):
        downloads.fetch(
            downloads.Download("net", "x", None, "0" * 40, (f"file://{tmp_path}/here",))
        )


def archive(**members):
    """A tar archive of these files; None makes a symbolic link out of the folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, body in members.items():
            info = tarfile.TarInfo(f"../{name}")
            info.size = len(body or b"")
            if body is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
            tar.addfile(info, io.BytesIO(body or b""))
    return stream.getvalue()


def test_a_file_of_an_archive_is_written_under_its_own_name(server):
    server.body = archive(net=BODY, link=None, empty=b"")
    checksum = hashlib.sha256(server.body).hexdigest()

    def member(name):
        urls = (f"{server.url}/missing#{name}", f"{server.url}/archive#{name}")
        return downloads.Download("net", "caffemodel", len(server.body), checksum, urls)

    for _ in range(2):
        assert downloads.fetch(member("../net")).read_bytes() == BODY
    folder = downloads.cache_folder()
    assert sorted(path.name for path in folder.iterdir()) == ["net.caffemodel", "net.tar.gz"]
    assert [path for path, _ in server.requests] == ["/missing", "/archive"]
    for name in ("../link", "../empty", "net"):
        with pytest.raises(FileError, match=f"it has no file '{name}'"):
            downloads.fetch(member(name))


def test_the_table_is_whole():
    known = downloads.downloads()
    assert {"res10_ssd", "mobilenet_ssd", "colorization", "openpose_coco"} <= known.keys()
    for name, files in known.items():
        kinds = [file.kind for file in files]
        assert sorted(set(kinds)) == sorted(kinds), name
        assert "caffemodel" in kinds, name
        for file in files:
            assert len(bytes.fromhex(file.checksum)) in (20, 32), name
            assert all(url.startswith(("http://", "https://")) for url in file.urls), name
    with pytest.raises(SpecError, match="did you mean 'mobilenet_ssd'"):
        models.weights("mobilnet_ssd")
