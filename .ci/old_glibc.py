"""Link for an older glibc than the machine's, whose own libraries still have the older symbols.

A newer glibc keeps each version of a function (`log@GLIBC_2.2.5` beside `log@@GLIBC_2.29`), and the
linker takes the newest.  `write_stubs` writes libraries that offer nothing newer than a bound.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

LIBRARIES = ("libc.so.6", "libm.so.6")
EMPTY = ("libpthread.so.0", "libdl.so.2")  # parts of libc.so.6 since 2.34
SYMBOL = re.compile(
    r"^ *\d+: \w+ +\d+ (FUNC|IFUNC|OBJECT|TLS) +(?:GLOBAL|WEAK) +DEFAULT +\d+"
    r" (\w+)@@?GLIBC_([\d.]+)$",
    re.M,
)

# What libstdc++ of a newer system asks for beside, and an older glibc has under another name.
SHIM = """
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN char __libc_single_threaded = 0;
HIDDEN int fstat(int file, void *facts) { return (int)syscall(SYS_fstat, file, facts); }
HIDDEN unsigned arc4random(void) {
    unsigned number = 0;
    return syscall(SYS_getrandom, &number, sizeof number, 0) == sizeof number ? number : 4;
}
"""


def linker_flags(folder: Path, compiler: str, newest: str) -> str:
    """Write the stubs into a folder; return LDFLAGS by which `compiler` links with them."""
    write_stubs(folder, compiler, newest)
    (folder / "shim.c").write_text(SHIM)
    _run(compiler, "-O2", "-fPIC", "-c", folder / "shim.c", "-o", folder / "shim.o")
    return f"-L{folder} {folder / 'shim.o'} -static-libstdc++ -Wl,--exclude-libs,ALL"


def write_stubs(folder: Path, compiler: str, newest: str) -> None:
    """Write libc.so, libm.so, libpthread.so and libdl.so with the symbols of glibc `newest`."""
    folder.mkdir(parents=True, exist_ok=True)
    readelf = re.sub(r"gcc$", "readelf", compiler)
    for name in LIBRARIES:
        text = _run(readelf, "-W", "--dyn-syms", _file(compiler, name))
        _link(folder, compiler, name, _default_versions(text, newest))
    for name in EMPTY:
        _link(folder, compiler, name, {})
    for name in (*LIBRARIES, *EMPTY):
        stem = name.partition(".")[0]
        needs = [str(folder / name)]
        if stem == "libc":
            # What is linked statically, and the loader's own symbols.
            (loader,) = set(
                re.findall(r"\[(ld-linux[^\]]+)\]", _run(readelf, "-d", _file(compiler, name)))
            )
            needs += [_file(compiler, "libc_nonshared.a"), f"AS_NEEDED({_file(compiler, loader)})"]
        (folder / f"{stem}.so").write_text(f"INPUT({' '.join(needs)})\n")


def _default_versions(text: str, newest: str) -> dict[str, tuple[str, str]]:
    """Map each symbol to its kind and its newest version that is not above `newest`."""
    symbols: dict[str, tuple[str, str]] = {}
    for kind, name, version in SYMBOL.findall(text):
        before = symbols.get(name)
        if _number(version) <= _number(newest) and (
            before is None or _number(version) > _number(before[1])
        ):
            symbols[name] = (kind, version)
    return symbols


def _link(folder: Path, compiler: str, name: str, symbols: dict[str, tuple[str, str]]) -> None:
    kinds = {"OBJECT": "object", "TLS": "tls_object"}
    lines = []
    for number, (symbol, (kind, version)) in enumerate(sorted(symbols.items())):
        lines += [
            f".section {'.tdata' if kind == 'TLS' else '.data'}",
            f".globl stub{number}",
            f".type stub{number},%{kinds.get(kind, 'function')}",
            f"stub{number}: .long 0",
            f".size stub{number},4",
            f".symver stub{number},{symbol}@@GLIBC_{version}",
        ]
    source, script = folder / f"{name}.s", folder / f"{name}.map"
    source.write_text("\n".join(lines) + "\n")
    versions = sorted({version for _, version in symbols.values()}, key=_number)
    script.write_text(
        "".join(
            f"GLIBC_{one} {{ {'local: stub*;' if one == versions[0] else ''} }};\n"
            for one in versions
        )
        or "NONE { local: stub*; };\n"
    )
    words = ["-shared", "-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script,{script}"]
    _run(compiler, *words, "-o", folder / name, source)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _file(compiler: str, name: str) -> str:
    return os.path.realpath(_run(compiler, f"-print-file-name={name}").strip())


def _run(*words: object) -> str:
    command = [str(word) for word in words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
