"""The messages and enumerations of Caffe, in a descriptor pool apart from a real caffe's."""

from __future__ import annotations

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

from sparknet.proto._descriptor import SERIALIZED

_pool = DescriptorPool()
_pool.AddSerializedFile(SERIALIZED)

DESCRIPTOR = _pool.FindFileByName("caffe.proto")


def _publish() -> None:
    for name, descriptor in DESCRIPTOR.message_types_by_name.items():
        message_class = GetMessageClass(descriptor)
        # Pickle finds a class by these two names.
        message_class.__module__, message_class.__qualname__ = __name__, name
        globals()[name] = message_class
    for name, enum in DESCRIPTOR.enum_types_by_name.items():
        globals()[name] = EnumTypeWrapper(enum)
        globals().update((value.name, value.number) for value in enum.values)


_publish()
