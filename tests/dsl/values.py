"""Any value that a field takes, for hypothesis."""

from hypothesis import strategies as st

from sparknet.dsl.fields import kind
from sparknet.proto.message_fields import is_repeated

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def scalars(field):
    simple = {
        "CPPTYPE_BOOL": st.booleans(),
        "CPPTYPE_STRING": TEXT,
        "TYPE_BYTES": st.binary(max_size=8),
        "CPPTYPE_INT32": st.integers(-(2**31), 2**31 - 1),
        "CPPTYPE_UINT32": st.integers(0, 2**32 - 1),
        "CPPTYPE_INT64": st.integers(-(2**63), 2**63 - 1),
        "CPPTYPE_UINT64": st.integers(0, 2**64 - 1),
        "CPPTYPE_FLOAT": st.floats(width=32, allow_nan=False),
        "CPPTYPE_DOUBLE": st.floats(allow_nan=False),
    }
    which = kind(field)
    if which == "CPPTYPE_ENUM":
        return st.sampled_from([v.name for v in field.enum_type.values])
    return simple[which]


def values(field, depth=2):
    if field.message_type is None:
        one = scalars(field)
    else:
        inner = [f for f in field.message_type.fields if depth or f.message_type is None]
        one = st.fixed_dictionaries({}, optional={f.name: values(f, depth - 1) for f in inner})
    return st.lists(one, max_size=3) if is_repeated(field) else one
