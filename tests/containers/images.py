"""Images made of Debian's busybox, as an archive that `ctr image import` takes.

One layer holds a static busybox and a link to it for each of its programs. Both images have it: the
sandbox's runs `sleep`, the other one whatever a test says.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

PAUSE, BUSYBOX = "kcm.test/pause:1", "kcm.test/busybox:1"
NOBODY = "kcm.test/nobody:1"  # as BUSYBOX, but of a user that has a name and no number
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PATH = "PATH=/bin"


def find_busybox() -> str:
    """Returns the path of a static busybox, "" if there is none."""
    path = shutil.which("busybox")
    if path is None:
        return ""
    libraries = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return "" if "=>" in libraries.stdout else path


def write_archive(path: Path) -> None:
    """Writes all images into one OCI archive."""
    blobs: dict[str, bytes] = {}

    def add(data: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {
            "mediaType": f"application/vnd.oci.image.{media_type}",
            "digest": f"sha256:{digest}",
            "size": len(data),
        }

    layer_data = _build_layer()
    layer = add(layer_data, "layer.v1.tar")
    manifests = []
    for name, command, user in (
        (PAUSE, ["/bin/sleep", "2147483647"], ""),
        (BUSYBOX, ["/bin/sh"], ""),
        (NOBODY, ["/bin/sh"], "nobody"),
    ):
        config = add(_build_config(layer_data, command, user, name), "config.v1+json")
        manifest = {"schemaVersion": 2, "config": config, "layers": [layer]}
        described = add(json.dumps(manifest).encode(), "manifest.v1+json")
        manifests.append({**described, "annotations": {"io.containerd.image.name": name}})
    index = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
    with tarfile.open(path, "w") as archive:
        _add_file(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}', 0o644)
        _add_file(archive, "index.json", index, 0o644)
        for digest, data in blobs.items():
            _add_file(archive, f"blobs/sha256/{digest}", data, 0o644)


def _build_config(layer: bytes, command: list[str], user: str, name: str) -> bytes:
    return json.dumps(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "author": name,
            "config": {"Cmd": command, "Env": [_PATH], "User": user},
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"],
            },
        }
    ).encode()


def _build_layer() -> bytes:
    busybox = find_busybox()
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as layer:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777), ("root", 0o700)):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, mode
            layer.addfile(info)
        _add_file(layer, "bin/busybox", Path(busybox).read_bytes(), 0o755)
        for name in listed.stdout.split():
            if name != "busybox":
                info = tarfile.TarInfo(f"bin/{name}")
                info.type, info.linkname = tarfile.SYMTYPE, "busybox"
                layer.addfile(info)
        users = b"root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
        _add_file(layer, "etc/passwd", users, 0o644)
        _add_file(layer, "etc/group", b"root:x:0:\nnogroup:x:65534:\nextra:x:4242:nobody\n", 0o644)
    return out.getvalue()


def _add_file(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))
