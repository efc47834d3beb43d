"""Connections to pods, Services and nodes, as webhooks and policies see them.

Source: pkg/registry/core/{pod,service,node}/rest, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from kcm.api.admissionregistration_v1 import CONNECT
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.http.responses import FindsAdmission
from kcm.apiserver.nodes.streams import SWITCHES
from kcm.apiserver.remarks import Remarks
from kcm.apiserver.request import Request, truth
from kcm.apiserver.request_info import RequestInfo

_OPTIONS = {
    ("pods", "exec"): "PodExecOptions",
    ("pods", "attach"): "PodAttachOptions",
    ("pods", "portforward"): "PodPortForwardOptions",
    ("pods", "proxy"): "PodProxyOptions",
    ("services", "proxy"): "ServiceProxyOptions",
    ("nodes", "proxy"): "NodeProxyOptions",
}


def admit_connection(
    admission: FindsAdmission,
    info: RequestInfo,
    request: Request,
    caller: Caller,
    remarks: Remarks,
) -> None:
    """Asks webhooks and policies about a connection. Raises the error of what refuses it."""
    asked = AdmissionRequest(
        CONNECT,
        info.resource,
        caller,
        info.subresource,
        info.namespace,
        info.name,
        remarks=remarks,
    )
    decides = admission.find(asked)
    if decides is not None:
        decides.decide(connection_options(info, request))


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
