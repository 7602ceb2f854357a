"""Compile caffe.proto into what sparknet.proto imports: `python proto/compile.py OUT_DIR`.

Writes OUT_DIR/_descriptor.py (the schema as one bytes constant) and OUT_DIR/caffe_pb2.pyi (its
types). No generated Python code: that would be bound to one protobuf runtime.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "caffe.proto"
MADE_BY = "Made from proto/caffe.proto by proto/compile.py"


def compile_schema(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        descriptor_set = Path(folder) / "schema.bin"
        run_protoc(descriptor_set, Path(folder))
        serialized = only_file(descriptor_set.read_bytes())
        types = (Path(folder) / "caffe_pb2.pyi").read_text()
    out.mkdir(parents=True, exist_ok=True)
    (out / "_descriptor.py").write_text(descriptor_module(serialized))
    (out / "caffe_pb2.pyi").write_text(f"# {MADE_BY}.\n{for_strict_mypy(types)}")


def run_protoc(descriptor_set: Path, pyi_out: Path) -> None:
    try:
        from grpc_tools import protoc  # type: ignore[import-untyped]
    except ImportError:
        sys.exit("proto/compile.py needs protoc: run pip install grpcio-tools")
    arguments = ["protoc", f"-I{SOURCE.parent}", f"--descriptor_set_out={descriptor_set}"]
    arguments += [f"--pyi_out={pyi_out}", SOURCE.name]
    if protoc.main(arguments) != 0:
        sys.exit(f"protoc refused {SOURCE}")


def only_file(descriptor_set: bytes) -> bytes:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    (schema,) = FileDescriptorSet.FromString(descriptor_set).file
    return schema.SerializeToString(deterministic=True)


def for_strict_mypy(types: str) -> str:
    """Protoc leaves the arguments of Mapping out, and types where a field is called `lambda`."""
    types = types.replace("_Mapping]", "_Mapping[str, object]]")
    return types.replace("**kwargs)", "**kwargs: object)")


def descriptor_module(serialized: bytes) -> str:
    lines = textwrap.wrap(serialized.hex(), 96)
    body = "\n".join(f'    "{line}"' for line in lines)
    return (
        f'"""{MADE_BY}."""\n\nfrom __future__ import annotations\n\n'
        f"SERIALIZED: bytes = bytes.fromhex(\n{body}\n)\n"
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python proto/compile.py OUT_DIR")
    compile_schema(Path(sys.argv[1]))
