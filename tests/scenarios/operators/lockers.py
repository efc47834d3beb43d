"""A kopf operator in two releases: each Locker gets a ConfigMap that says how many boxes it has.

Release 1 knows Lockers of v1alpha1, with `spec.size` such as `2x3`. Release 2 knows them in v1,
with `spec.rows` and `spec.columns`, and serves the conversion webhook between the two, beside the
admission webhooks, which kopf serves.
"""

# mypy: disable-error-code="arg-type"
# kopf's types of handlers know patches and specs by other names.

from __future__ import annotations

import json
import os
import re
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kopf
import kubernetes

GROUP, PLURAL = "example.com", "lockers"
RELEASE = os.environ["RELEASE"]
VERSION = "v1" if RELEASE == "2" else "v1alpha1"
FOLDER = os.environ["CERTIFICATES"]
_SIZE = re.compile(r"([1-9][0-9]*)x([1-9][0-9]*)")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    kubernetes.config.load_kube_config()
    settings.posting.enabled = False
    settings.admission.managed = "lockers.example.com"
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        host="127.0.0.1",
        cafile=f"{FOLDER}/webhooks.crt",
        certfile=f"{FOLDER}/127.0.0.1.crt",
        pkeyfile=f"{FOLDER}/127.0.0.1.key",
    )
    if RELEASE == "2":
        _serve_conversion(int(os.environ["CONVERSION_PORT"]))


# --- admission


@kopf.on.mutate(GROUP, VERSION, PLURAL, operation="CREATE")
def fill_in(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    if RELEASE == "1":
        if "size" not in spec:
            patch.spec["size"] = "1x1"
    elif "rows" not in spec:
        patch.spec.update({"rows": 1, "columns": 1})


@kopf.on.validate(GROUP, VERSION, PLURAL, operations=["CREATE", "UPDATE"])
def check(spec: kopf.Spec, **_: Any) -> None:
    if RELEASE == "1" and not _SIZE.fullmatch(spec["size"]):
        raise kopf.AdmissionError(f"{spec['size']} is no size", code=422)
    if RELEASE == "2" and spec["rows"] * spec["columns"] > 100:
        raise kopf.AdmissionError("a locker has at most 100 boxes", code=422)


# --- the work


@kopf.on.create(GROUP, VERSION, PLURAL)
@kopf.on.resume(GROUP, VERSION, PLURAL)
@kopf.on.update(GROUP, VERSION, PLURAL)
def build(body: kopf.Body, name: str, namespace: Any, spec: kopf.Spec, **_: Any) -> None:
    rows, columns = _size_of(dict(spec))
    config_map: Any = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"boxes": str(rows * columns), "release": RELEASE},
    }
    kopf.adopt(config_map, owner=body)
    core = kubernetes.client.CoreV1Api()
    try:
        core.create_namespaced_config_map(namespace, config_map)
    except kubernetes.client.ApiException as error:
        if error.status != 409:  # it is there since before
            raise
        core.patch_namespaced_config_map(name, namespace, {"data": config_map["data"]})


@kopf.on.delete(GROUP, VERSION, PLURAL)
def close(name: str, namespace: Any, **_: Any) -> None:
    note: Any = {"metadata": {"name": f"{name}-closed"}}
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, note)


def _size_of(spec: dict[str, Any]) -> tuple[int, int]:
    if "size" in spec:
        found = _SIZE.fullmatch(spec["size"])
        assert found is not None
        return int(found[1]), int(found[2])
    return spec["rows"], spec["columns"]


# --- conversion


class _Conversion(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review.pop("request")
        wanted = request["desiredAPIVersion"]
        review["response"] = {
            "uid": request["uid"],
            "result": {"status": "Success"},
            "convertedObjects": [_convert(obj, wanted) for obj in request["objects"]],
        }
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _convert(obj: Any, wanted: str) -> Any:
    spec = obj.get("spec") or {}
    if "size" in spec or "rows" in spec:  # an empty one is filled in by the admission webhook
        rows, columns = _size_of(spec)
        sizes = {"rows": rows, "columns": columns}
        size = sizes if wanted.endswith("/v1") else {"size": f"{rows}x{columns}"}
        others = {name: spec[name] for name in spec.keys() - {"size", "rows", "columns"}}
        spec = others | size
    return {**obj, "apiVersion": wanted, "spec": spec}


def _serve_conversion(port: int) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", port), _Conversion)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{FOLDER}/127.0.0.1.crt", f"{FOLDER}/127.0.0.1.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
