"""Connections to pods, Services and nodes, as webhooks and policies see them.

Source: pkg/registry/core/{pod,service,node}/rest, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from kcm.api.admissionregistration_v1 import CONNECT
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.egress.streams import SWITCHES
from kcm.apiserver.request import Remarks, Request, truth
from kcm.apiserver.request_info import RequestInfo
from kcm.store import Store
from kcm.store.admission.plugin import Write

_OPTIONS = {
    ("pods", "exec"): "PodExecOptions",
    ("pods", "attach"): "PodAttachOptions",
    ("pods", "portforward"): "PodPortForwardOptions",
    ("pods", "proxy"): "PodProxyOptions",
    ("services", "proxy"): "ServiceProxyOptions",
    ("nodes", "proxy"): "NodeProxyOptions",
}


def admit_connection(
    store: Store, info: RequestInfo, request: Request, caller: Caller, remarks: Remarks
) -> None:
    """Passes a connection through admission. Raises the error of what refuses it."""
    asks = AdmissionRequest(
        caller=caller, namespace=info.namespace, name=info.name, remarks=remarks
    )
    store.admission.run(
        Write(
            CONNECT,
            info.resource,
            subresource=info.subresource,
            request=asks,
            sent=connection_options(info, request),
        )
    )


def connection_options(info: RequestInfo, request: Request) -> dict[str, Any]:
    """Returns the options of a connection as JSON. Raises BadRequest."""
    kind = _OPTIONS[info.resource.name, info.subresource]
    options: dict[str, Any] = {"kind": kind, "apiVersion": "v1"}
    if info.subresource == "proxy":
        _, _, path = request.path.partition("/proxy")
        return {**options, **({"path": path} if path else {})}
    if info.subresource == "portforward":
        ports = [int(value) for name, value in request.pairs if name == "ports" and value.isdigit()]
        return {**options, **({"ports": ports} if ports else {})}
    options |= {flag: True for flag in SWITCHES if truth(request.query, flag)}
    if container := request.query.get("container"):
        options["container"] = container
    if info.subresource == "exec":
        options["command"] = [value for name, value in request.pairs if name == "command"]
    return options
