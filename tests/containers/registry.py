"""A registry over plain HTTP that has one image, for whoever knows its password.

    python -m tests.containers.registry ARCHIVE PORT

The image is the first of an OCI archive that has the name of BUSYBOX; it has every name here.
"""

from __future__ import annotations

import base64
import json
import sys
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.containers.images import BUSYBOX

USER, PASSWORD = "me", "word"
_AUTHORIZATION = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def read_archive(path: str) -> tuple[str, dict[str, bytes]]:
    """Returns the digest of the image's manifest, and all blobs by their digests."""
    with tarfile.open(path) as archive:
        contents = {
            member.name: file.read()
            for member in archive
            if (file := archive.extractfile(member)) is not None
        }
    manifests = json.loads(contents["index.json"])["manifests"]
    name = "io.containerd.image.name"
    digest = next(each["digest"] for each in manifests if each["annotations"][name] == BUSYBOX)
    blobs = {path.replace("blobs/sha256/", "sha256:"): data for path, data in contents.items()}
    return digest, blobs


def serve(path: str, port: int) -> None:
    """Serves the archive until the process ends."""
    manifest, blobs = read_archive(path)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            *_, kind, reference = self.path.split("/")
            if self.headers.get("Authorization") != _AUTHORIZATION:
                self._answer(401, b"")
            elif kind == "manifests":
                digest = reference if reference in blobs else manifest
                self._answer(200, blobs[digest], _MANIFEST, digest)
            elif reference in blobs:
                self._answer(200, blobs[reference], "application/octet-stream", reference)
            else:
                self._answer(200 if self.path == "/v2/" else 404, b"")

        do_HEAD = do_GET  # noqa: N815 - the names of http.server

        def _answer(self, code: int, body: bytes, kind: str = "", digest: str = "") -> None:
            self.send_response(code)
            if code == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="registry"')
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
