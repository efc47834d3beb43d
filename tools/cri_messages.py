"""Writes kcm/kubelet/runtime/cri/messages.binpb from upstream's definition of CRI v1.

    pip install grpcio-tools
    python tools/cri_messages.py API_PROTO > kcm/kubelet/runtime/cri/messages.binpb

API_PROTO is staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto at the tag of the release that
kcm follows. The result is a serialized FileDescriptorProto of the calls that kcm makes and of the
messages that these calls need: names, numbers and types, and nothing else. A call that is not there
yet is one more name in CALLS.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2

CALLS = frozenset(
    str.split(
        "Version Status RunPodSandbox StopPodSandbox RemovePodSandbox PodSandboxStatus "
        "ListPodSandbox CreateContainer StartContainer StopContainer RemoveContainer "
        "ListContainers ContainerStatus UpdateContainerResources ReopenContainerLog ExecSync Exec "
        "Attach PortForward ContainerStats GetContainerEvents ImageStatus ListImages PullImage "
        "RemoveImage ImageFsInfo"
    )
)


def compile_proto(path: Path) -> descriptor_pb2.FileDescriptorProto:
    """Returns the descriptor of a file without imports. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "set")
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{path.parent}",
             f"--descriptor_set_out={out}", path.name],
            check=True,
        )  # fmt: skip
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]


def select_calls(whole: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FileDescriptorProto:
    """Returns the part of a file that the calls in CALLS need."""
    part = descriptor_pb2.FileDescriptorProto(
        name="kcm/cri.proto", package=whole.package, syntax=whole.syntax
    )
    needed: set[str] = set()
    for service in whole.service:
        methods = [method for method in service.method if method.name in CALLS]
        if methods:
            part.service.add(name=service.name, method=methods)
        for method in methods:
            needed |= {method.input_type, method.output_type}
    messages = {f".{whole.package}.{message.name}": message for message in whole.message_type}
    waiting = list(needed)
    while waiting:
        message = messages.get(waiting.pop())
        if message is None:
            continue  # an enum
        for field in message.field:
            for type_ in _types_of(field, message):
                if type_ not in needed:
                    needed.add(type_)
                    waiting.append(type_)
    part.message_type.extend(m for name, m in messages.items() if name in needed)
    part.enum_type.extend(e for e in whole.enum_type if f".{whole.package}.{e.name}" in needed)
    return part


def _types_of(
    field: descriptor_pb2.FieldDescriptorProto, message: descriptor_pb2.DescriptorProto
) -> list[str]:
    """Returns the types that a field names; for a map, those of its entries."""
    name = field.type_name.rpartition(".")[2]
    entries = [nested for nested in message.nested_type if nested.name == name]
    return [f.type_name for entry in entries for f in entry.field] if entries else [field.type_name]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    chosen = select_calls(compile_proto(Path(sys.argv[1])))
    sys.stdout.buffer.write(chosen.SerializeToString(deterministic=True))
