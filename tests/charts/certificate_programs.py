"""The programs of the chart `certificates`, for pods that are processes of this machine.

    python -m tests.charts.certificate_programs webhook|injector|controller|startupcheck

They speak to the API server with the token of their pod, and with the rights of their account.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from tests.integration.apiserver.authority import Authority

GROUP = "/apis/certificates.example.com/v1"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/{}-webhook"
BETWEEN_LOOKS = 0.1  # seconds


class Api:
    """A client with the token of the pod."""

    def __init__(self) -> None:
        folder = Path("/var/run/secrets/kubernetes.io/serviceaccount")
        if not (folder / "token").exists():  # where the kubelet may not mount
            folder = Path(os.environ["KCM_ROOT"] + str(folder))
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        self._client = httpx.Client(
            base_url=f"https://{host}:{port}",
            verify=ssl.create_default_context(cafile=str(folder / "ca.crt")),
            headers={"authorization": f"Bearer {(folder / 'token').read_text()}"},
        )

    def send(self, method: str, path: str, body: Any = None, **params: str) -> httpx.Response:
        merge = {"content-type": "application/merge-patch+json"} if method == "PATCH" else {}
        return self._client.request(method, path, json=body, params=params, headers=merge)

    def get(self, path: str) -> Any:
        """Returns the object at a path, or None."""
        response = self.send("GET", path)
        return response.json() if response.status_code == 200 else None

    def put(self, path: str, name: str, body: Mapping[str, Any]) -> None:
        """Creates an object, or merges it into the one that is there."""
        body = {**body, "metadata": {"name": name}}
        if self.send("POST", path, body).status_code == 409:
            self.send("PATCH", f"{path}/{name}", body).raise_for_status()


class _Webhook(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send(b"ok")

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        request = review["request"]
        answer: dict[str, Any] = {"uid": request["uid"], "allowed": True}
        spec = request["object"]["spec"]
        if self.path.startswith("/mutate") and "duration" not in spec:
            change = [{"op": "add", "path": "/spec/duration", "value": "2160h"}]
            patch = base64.b64encode(json.dumps(change).encode()).decode()
            answer |= {"patch": patch, "patchType": "JSONPatch"}
        elif self.path.startswith("/validate") and not (spec.keys() & {"commonName", "dnsNames"}):
            words = "spec: Invalid value: at least one of commonName, dnsNames must be set"
            answer |= {"allowed": False, "status": {"message": words, "code": 422}}
        self._send(json.dumps({**review, "response": answer}).encode())

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


def serve_webhook(api: Api, namespace: str, release: str) -> None:
    """Makes an authority of its own, publishes its certificate, and serves the webhook."""
    authority = Authority(Path.cwd(), "authority")
    certificate, key = authority.server(f"{release}-webhook.{namespace}.svc")
    trust = base64.b64encode(authority.path.read_bytes()).decode()
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    api.put(secrets, f"{release}-webhook-ca", {"data": {"ca.crt": trust}})
    server = ThreadingHTTPServer((os.environ["POD_IP"], 10250), _Webhook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def inject(api: Api, namespace: str, release: str) -> None:
    """Writes the webhook's authority into both configurations, whenever one of them lacks it."""
    while True:
        secret = api.get(f"/api/v1/namespaces/{namespace}/secrets/{release}-webhook-ca")
        for kind in ("mutating", "validating") if secret else ():
            path = CONFIGURATIONS.format(kind, namespace)
            configuration = api.get(path)
            if configuration and _trust(configuration["webhooks"], secret["data"]["ca.crt"]):
                api.send("PUT", path, configuration)
        time.sleep(BETWEEN_LOOKS)


def _trust(webhooks: list[dict[str, Any]], bundle: str) -> bool:
    """Gives all webhooks this caBundle; returns whether one of them had another."""
    before = {webhook["clientConfig"].get("caBundle") for webhook in webhooks}
    for webhook in webhooks:
        webhook["clientConfig"]["caBundle"] = bundle
    return before != {bundle}


def issue(api: Api, namespace: str, release: str) -> None:
    """Takes the leader's lease, and makes the Secret of each Certificate."""
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{os.environ['ELECTION_NAMESPACE']}/leases"
    holder = {"spec": {"holderIdentity": os.environ["HOSTNAME"], "leaseDurationSeconds": 60}}
    api.put(leases, f"{namespace}-controller", holder)
    while True:
        for one in (api.get(f"{GROUP}/certificates") or {"items": []})["items"]:
            if one.get("status"):
                continue
            where, name = one["metadata"]["namespace"], one["metadata"]["name"]
            secret = {"type": "kubernetes.io/tls", "stringData": {"tls.crt": name, "tls.key": ""}}
            api.put(f"/api/v1/namespaces/{where}/secrets", one["spec"]["secretName"], secret)
            ready = {"type": "Ready", "status": "True", "reason": "Issued"}
            path = f"{GROUP}/namespaces/{where}/certificates/{name}/status"
            api.send("PATCH", path, {"status": {"conditions": [ready]}})
        time.sleep(BETWEEN_LOOKS)


def check(api: Api, namespace: str, release: str) -> None:
    """Returns once the API server takes a Certificate that the webhook has to be asked about."""
    path = f"{GROUP}/namespaces/{namespace}/certificates"
    spec = {"secretName": "check", "issuer": "check", "commonName": "check"}
    body = {
        "apiVersion": "certificates.example.com/v1",
        "kind": "Certificate",
        "metadata": {"generateName": "startupcheck-"},
        "spec": spec,
    }
    while api.send("POST", path, body, dryRun="All").status_code != 201:
        time.sleep(BETWEEN_LOOKS)


PROGRAMS: Mapping[str, Callable[[Api, str, str], None]] = {
    "webhook": serve_webhook,
    "injector": inject,
    "controller": issue,
    "startupcheck": check,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](Api(), os.environ["POD_NAMESPACE"], os.environ["RELEASE"])
