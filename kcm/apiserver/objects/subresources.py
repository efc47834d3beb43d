"""Subresources other than `status`, and their handlers.

Source: pkg/registry/core/pod/storage/storage.go and pkg/registry/core/namespace/storage/storage.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kcm import errors
from kcm.api.certificates_v1 import CertificateSigningRequest
from kcm.api.core_v1 import Namespace, Pod
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apiserver.http.bodies import client_warnings, patches, reading, structs
from kcm.apiserver.http.responses import ApiRequest, Response, json_response
from kcm.apiserver.http_errors import MethodNotAllowed, PathNotFound
from kcm.apiserver.objects import admission, signing_requests, status, verbs
from kcm.apiserver.objects.eviction import evict
from kcm.apiserver.objects.scale import scale
from kcm.apiserver.request_info import RequestInfo
from kcm.store import Store
from kcm.store.strategies.pod_binding import bind_to_node

Handler = Callable[[Store, ApiRequest], Response]
_SIGNING_REQUESTS = "certificatesigningrequests.certificates.k8s.io"


# --- pods/binding


def bind(store: Store, request: ApiRequest) -> Response:
    """Handles a POST of a Binding: binds a pod that has no node yet to a node."""
    binding = reading.read_struct(request, structs.Binding)
    if binding.metadata.name and binding.metadata.name != request.info.name:
        raise errors.BadRequest("name in URL does not match name in Binding object")
    binding = admission.admit_struct(store, request, binding, "v1")
    node, metadata = _target_node(binding, request.info.name), binding.metadata

    def change(old: Pod) -> Pod:
        _check_preconditions(old, metadata)
        bound = bind_to_node(old, node, store.clock.now(), metadata.labels)
        if metadata.annotations:
            bound = bound.with_metadata(annotations={**old.annotations, **metadata.annotations})
        return bound

    verbs.modify(store, request, change, manager=verbs.NOBODY)
    return json_response(status.success(), 201)


def _check_preconditions(pod: Pod, wanted: ObjectMeta) -> None:
    """Raises Conflict if the Binding is for another pod of this name, or another state of it."""
    for name, value, present in (
        ("UID", wanted.uid, pod.uid),
        ("ResourceVersion", wanted.resource_version, pod.metadata.resource_version),
    ):
        if value and value != present:
            why = f"Precondition failed: {name} in precondition: {value}, "
            raise errors.Conflict.of(
                "pods/binding", pod.name, f"{why}{name} in object meta: {present}"
            )


def _target_node(binding: structs.Binding, name: str) -> str:
    """Returns the name of the node. Raises Invalid. `name` is the pod's, for the error."""
    target, faults = binding.target, []
    if target.kind not in {None, "", "Node"}:
        supported = 'supported values: "Node", "<empty>"'
        faults.append(errors.FieldError("Unsupported value", "target.kind", target.kind, supported))
    if not target.name:
        faults.append(errors.FieldError("Required value", "target.name"))
    if faults:
        raise errors.Invalid(faults, kind="Binding", name=name)
    return str(target.name)


def bind_by_collection(store: Store, request: ApiRequest) -> Response:
    """Handles a POST of a Binding to the namespace, which names its pod itself."""
    if request.method != "POST" or request.info.name or not request.info.namespace:
        raise MethodNotAllowed
    name = reading.read_struct(request, structs.Binding).metadata.name
    if not name:
        raise errors.BadRequest("name is required: the Binding has to name its pod")
    info = RequestInfo(Pod.resource, request.info.namespace, name, "binding")
    return bind(store, replace(request, info=info))


# --- namespaces/finalize


def finalize(store: Store, request: ApiRequest) -> Response:
    """Handles a PUT of a namespace that changes its spec.finalizers.

    A namespace that is being deleted is removed when it has none left.
    """
    obj, warnings = reading.read_object(request)
    assert isinstance(obj, Namespace)  # the route is that of namespaces
    finalizers = obj.spec.finalizers

    def change(old: Namespace) -> Namespace:
        return old.with_spec(old.spec.replace(finalizers=finalizers or None))

    return verbs.object_response(
        request, verbs.modify(store, request, change, manager=verbs.NOBODY), warnings=warnings
    )


# --- pods/ephemeralcontainers, pods/resize and certificatesigningrequests/approval


def read_whole(store: Store, request: ApiRequest) -> Response:
    """Handles a GET of a subresource that is the whole object."""
    return verbs.object_response(request, store.get(request.info.resource, request.info.key))


def approve(store: Store, request: ApiRequest) -> Response:
    """Handles a PUT of the approval: sets the conditions of a signing request."""
    sent, warnings = reading.read_object(request)
    assert isinstance(sent, CertificateSigningRequest)  # the route is that of signing requests

    def change(old: CertificateSigningRequest) -> CertificateSigningRequest:
        if reading.names_other_version(sent.metadata.resource_version, old):
            raise errors.Conflict.of(request.info.resource.name, old.name)
        return signing_requests.with_approval(old, sent, store.clock.now())

    return verbs.object_response(request, verbs.modify(store, request, change), warnings=warnings)


def patch_approval(store: Store, request: ApiRequest) -> Response:
    """Handles a PATCH of the approval; it changes conditions, labels and annotations only."""
    resource = request.info.resource
    parsed = patches.parse(request.content_type, request.body, resource)
    patched = patches.on_objects(parsed, resource, request.body)

    def change(old: CertificateSigningRequest) -> CertificateSigningRequest:
        new = client_warnings.prune(patched(old))
        assert isinstance(new, CertificateSigningRequest)  # a patch changes no kind
        return signing_requests.with_approval(old, new, store.clock.now())

    return verbs.object_response(request, verbs.modify(store, request, change))


_SCALE: Mapping[str, Handler] = {"GET": scale, "PUT": scale, "PATCH": scale}
_PART: Mapping[str, Handler] = {"GET": read_whole, "PUT": verbs.update, "PATCH": verbs.patch}
_HANDLERS: Mapping[tuple[str, str], Mapping[str, Handler]] = {
    ("pods", "binding"): {"POST": bind},
    ("pods", "ephemeralcontainers"): _PART,
    ("pods", "eviction"): {"POST": evict},
    ("pods", "resize"): _PART,
    ("pods", "log"): {},  # streamed by `kcm.apiserver.egress.logs`
    ("pods", "exec"): {},  # these three are handled by `kcm.apiserver.egress.streams`
    ("pods", "attach"): {},
    ("pods", "portforward"): {},
    ("pods", "proxy"): {},  # these three are handled by `kcm.apiserver.egress.object_proxy`
    ("services", "proxy"): {},
    ("nodes", "proxy"): {},
    ("namespaces", "finalize"): {"PUT": finalize},
    (_SIGNING_REQUESTS, "approval"): {
        "GET": read_whole,
        "PUT": approve,
        "PATCH": patch_approval,
    },
    ("serviceaccounts", "token"): {},  # handled by `kcm.apiserver.objects.token_requests`
}


@dataclass(frozen=True)
class DescribedSubresource:
    """How discovery describes a subresource."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


_DESCRIBED = {
    "scale": DescribedSubresource(
        "scale", "Scale", "autoscaling", "v1", ("get", "patch", "update")
    ),
    "binding": DescribedSubresource("binding", "Binding", "", "v1", ("create",)),
    "log": DescribedSubresource("log", "Pod", "", "v1", ("get",)),
    "exec": DescribedSubresource("exec", "PodExecOptions", "", "v1", ("create", "get")),
    "attach": DescribedSubresource("attach", "PodAttachOptions", "", "v1", ("create", "get")),
    "portforward": DescribedSubresource(
        "portforward", "PodPortForwardOptions", "", "v1", ("create", "get")
    ),
    "ephemeralcontainers": DescribedSubresource(
        "ephemeralcontainers", "Pod", "", "v1", ("get", "patch", "update")
    ),
    "resize": DescribedSubresource("resize", "Pod", "", "v1", ("get", "patch", "update")),
    "eviction": DescribedSubresource("eviction", "Eviction", "policy", "v1", ("create",)),
    "finalize": DescribedSubresource("finalize", "Namespace", "", "v1", ("update",)),
    "approval": DescribedSubresource(
        "approval",
        "CertificateSigningRequest",
        "certificates.k8s.io",
        "v1",
        ("get", "patch", "update"),
    ),
    "token": DescribedSubresource(
        "token", "TokenRequest", "authentication.k8s.io", "v1", ("create",)
    ),
}


_PROXY_VERBS = ("create", "delete", "get", "patch", "update")


def _describe(owner: Resource, name: str) -> DescribedSubresource:
    if name == "proxy":
        return DescribedSubresource("proxy", f"{owner.kind}ProxyOptions", "", "v1", _PROXY_VERBS)
    return _DESCRIBED[name]


def describe_subresources(resource: Resource) -> list[DescribedSubresource]:
    """Returns the subresources of a resource, sorted by name as upstream does."""
    descriptions = [
        _describe(resource, name) for owner, name in _HANDLERS if owner == resource.name
    ]
    if resource.scale is not None:
        descriptions.append(_DESCRIBED["scale"])
    if resource.has_status:
        verbs_ = ("get", "patch", "update")
        descriptions.append(
            DescribedSubresource("status", resource.kind, resource.group, resource.version, verbs_)
        )
    return sorted(descriptions, key=lambda subresource: subresource.name)


def handler(request: ApiRequest) -> Handler:
    """Returns the handler of a subresource. Raises PathNotFound and MethodNotAllowed."""
    info = request.info
    by_method = _HANDLERS.get((info.resource.name, info.subresource))
    if info.subresource == "scale" and info.resource.scale is not None:
        by_method = _SCALE
    if by_method is None:
        raise PathNotFound
    if request.method not in by_method:
        raise MethodNotAllowed
    return by_method[request.method]
