"""CRI's messages and calls, as classes that are made when this module is first used.

`messages.binpb` is a serialized FileDescriptorProto, written by `tools/cri_messages.py` from
upstream's api.proto. Classes of run time depend on no version of the protobuf compiler.

Source: staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Message = Any  # its class, and so its fields, are made at run time


@dataclass(frozen=True)
class Call:
    """A call of CRI: the path of its method, its request and its response.

    `is_stream` says that it has many responses.
    """

    path: str
    request: Any
    response: Any
    is_stream: bool = False


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    data = resources.files(__package__).joinpath("messages.binpb").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(data))
    return pool


@cache
def calls() -> Mapping[str, Call]:
    """Returns the calls of both services by their names."""
    by_name: dict[str, Call] = {}
    for name in ("runtime.v1.RuntimeService", "runtime.v1.ImageService"):
        for method in _pool().FindServiceByName(name).methods:
            by_name[method.name] = Call(
                f"/{name}/{method.name}",
                message_factory.GetMessageClass(method.input_type),
                message_factory.GetMessageClass(method.output_type),
                method.server_streaming,
            )
    return by_name


def new(name: str, **fields: Any) -> Message:
    """Returns a new message, such as a `PodSandboxConfig`, with what protobuf takes for fields."""
    described = _pool().FindMessageTypeByName(f"runtime.v1.{name}")
    return message_factory.GetMessageClass(described)(**fields)


def enum_name(message: Message, field: str) -> str:
    """Returns the name of the value of an enum's field, "" for a number that has none."""
    described = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    value = described.get(getattr(message, field))
    return str(value.name) if value is not None else ""
