"""Messages made at random, for the tests that any message must pass."""

import struct

from hypothesis import strategies as st

from sparknet.proto import caffe_pb2
from sparknet.proto.message_fields import Field, table

MESSAGES = [
    getattr(caffe_pb2, name)
    for name in ("NetParameter", "SolverParameter", "LayerParameter", "BlobProto", "Datum")
]
_FLOAT32 = st.integers(0, 2**32 - 1).map(lambda bits: struct.unpack("<f", struct.pack("<I", bits)))
_SCALARS = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "float": _FLOAT32.map(lambda unpacked: unpacked[0]) | st.floats(width=32),
    "double": st.floats(),
    "bool": st.booleans(),
    "string": st.text(st.characters(codec="utf-8"), max_size=20),
    "bytes": st.binary(max_size=20),
}


@st.composite
def messages(draw):
    """A message of one of the main types, with required fields filled."""
    message = draw(st.sampled_from(MESSAGES))()
    _fill(draw, message, 3)
    return message


def _fill(draw, message, depth):
    fields = [field for field in table(message.DESCRIPTOR).values() if depth or not field.message]
    some = st.lists(st.sampled_from(fields), max_size=4, unique_by=_name) if fields else st.just([])
    for field in draw(some):
        for _ in range(draw(st.integers(1, 3)) if field.repeated else 1):
            _set(draw, message, field, depth)
    if isinstance(message, caffe_pb2.ClipParameter):
        message.min = message.max = 0.5
    elif not message.IsInitialized():
        message.Clear()  # the required fields of the forks are not worth the effort


def _name(field: Field) -> str:
    return field.name


def _set(draw, message, field, depth):
    target = getattr(message, field.name)
    if field.message:
        child = target.add() if field.repeated else target
        child.SetInParent()
        _fill(draw, child, depth - 1)
        return
    one = st.sampled_from(sorted(field.names)) if field.kind == "enum" else _SCALARS[field.kind]
    if field.repeated:
        target.append(draw(one))
    else:
        setattr(message, field.name, draw(one))
