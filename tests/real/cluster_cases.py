"""Cases of nodes, volumes, certificates, tokens and other objects of a cluster."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from kcm.api.simulated import SIMULATOR_LABEL
from kcm.controllers.cloud.cloudnode.nodes import UNINITIALIZED_TAINT
from kcm.controllers.serviceaccounts.legacyserviceaccounttokencleaner import INVALID_SINCE
from tests.real.client import Json, Space
from tests.real.objects import (
    CLAIMS,
    PDB,
    PODS,
    PVC,
    RS,
    SA,
    SECRETS,
    SVC,
    TEMPLATES,
    Steps,
    owner,
    template,
    workload,
)
from tests.real.runner import Case, Step
from tests.signing_requests import build_pem_authority, build_pem_request

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
DRIVER = "real.csi.example.com"


def disruption(space: Space) -> Steps:
    space.create(RS, "web", spec=workload("web", 3))
    selector = {"matchLabels": {"app": "web"}}
    space.create(PDB, "web", spec={"minAvailable": 2, "selector": selector})
    yield "one allowed", lambda: space.at(PDB, "web", "status", "disruptionsAllowed") == 1


def taint_eviction(space: Space) -> Steps:
    name = "tainted"
    taint = {"key": "real", "effect": "NoExecute"}
    body = {"metadata": {"name": name}, "spec": {"taints": [taint]}}
    space.api.create("/api/v1/nodes", body)
    space.create(PODS, "p", spec=template()["spec"] | {"nodeName": name})
    yield "evicted", lambda: not space.pods()


def ttl(space: Space) -> Steps:
    space.api.create("/api/v1/nodes", {"metadata": {"name": "annotated"}})
    path, key = "/api/v1/nodes/annotated", "node.alpha.kubernetes.io/ttl"

    def is_annotated() -> bool:
        return key in ((space.api.get(path) or {})["metadata"].get("annotations") or {})

    yield "annotated", is_annotated


def volumes(space: Space) -> Steps:
    """Binds a claim, protects both, and keeps the volume that a claim leaves behind."""
    size = {"storage": "1Gi"}
    source = {"hostPath": {"path": "/tmp/x"}, "accessModes": ["ReadWriteOnce"]}
    name = f"pv-{space.name}"
    volume = {"capacity": size, "storageClassName": name, **source}
    path = f"/api/v1/persistentvolumes/{name}"
    space.api.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})
    claim = {"storageClassName": name, "accessModes": ["ReadWriteOnce"]}
    space.create(PVC, "c", spec={**claim, "resources": {"requests": size}})
    yield "bound", lambda: space.at(PVC, "c", "status", "phase") == "Bound"
    bound = space.get(PVC, "c")
    assert bound is not None
    assert "kubernetes.io/pvc-protection" in bound["metadata"]["finalizers"]
    space.delete(PVC, "c")
    yield "the claim goes", lambda: space.get(PVC, "c") is None
    yield "released", lambda: (space.api.get(path) or {})["status"]["phase"] == "Released"
    space.api.delete(path)
    yield "the volume goes", lambda: space.api.get(path) is None


def ephemeral_volume(space: Space) -> Steps:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    space.create(PODS, "p", spec=template(volumes=[volume])["spec"])
    yield "a claim", lambda: space.get(PVC, "p-v")


def attach_detach(space: Space) -> Steps:
    name = f"pv-{space.name}"
    space.api.create(
        "/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": DRIVER}, "spec": {}}
    )
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    space.api.create(
        "/api/v1/nodes", {"metadata": {"name": "attaching", "annotations": annotations}}
    )
    node = space.api.get("/api/v1/nodes/attaching")
    assert node is not None
    csi = {
        "metadata": {"name": "attaching", "ownerReferences": owner("Node", "v1", node)},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": "n", "topologyKeys": None}]},
    }
    space.api.create("/apis/storage.k8s.io/v1/csinodes", csi)
    yield _claim_volume(space, name)
    mount = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    space.create(PODS, "p", spec=template(volumes=[mount])["spec"] | {"nodeName": "attaching"})
    yield "attached", lambda: _attachments(space, name)


def expansion(space: Space) -> Steps:
    """A claim that asks for more is told that its driver's own controller has to do it."""
    name = f"grows-{space.name}"
    storage_class = {"provisioner": DRIVER, "allowVolumeExpansion": True}
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    space.api.create(classes, {"metadata": {"name": name}, **storage_class})
    yield _claim_volume(space, name)
    more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    space.api.patch(space.path(PVC, "c"), more)

    def list_reasons() -> set[str]:
        return {event["reason"] for event in space.api.list(space.path("v1/events"))}

    yield "told", lambda: "ExternalExpanding" in list_reasons()


def _claim_volume(space: Space, name: str) -> Step:
    """Creates a volume of the driver, whose class has the same name, and the claim `c` that is to
    be bound to it.
    """
    modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": name}
    volume = {
        **modes,
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "claimRef": {"namespace": space.name, "name": "c"},
    }
    space.api.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})
    wanted = {"requests": {"storage": "1Gi"}}
    space.create(PVC, "c", spec={**modes, "resources": wanted, "volumeName": name})
    return "bound", lambda: space.at(PVC, "c", "status", "phase") == "Bound"


def _attachments(space: Space, volume: str) -> list[Json]:
    listed = space.api.list("/apis/storage.k8s.io/v1/volumeattachments")
    return [a for a in listed if a["spec"]["source"].get("persistentVolumeName") == volume]


def signing(space: Space) -> Steps:
    """Signs the client certificate of a node, which asks for it itself."""
    signer = "kubernetes.io/kube-apiserver-client"
    path = _approve_request(space, build_pem_request("system:node:n1", ["system:nodes"]), signer)
    yield "signed", lambda: (space.api.get(path) or {})["status"].get("certificate")


def _approve_request(space: Space, request: bytes, signer: str) -> str:
    """Creates and approves a signing request, and returns its path."""
    spec = {
        "request": base64.b64encode(request).decode(),
        "signerName": signer,
        "usages": ["client auth"],
    }
    name = f"csr-{space.name}"
    created = space.api.create(REQUESTS, {"metadata": {"name": name}, "spec": spec})
    condition = {"type": "Approved", "status": "True", "reason": "Test", "message": "test"}
    approved = {**created, "status": {"conditions": [condition]}}
    response = space.api.http.put(f"{REQUESTS}/{name}/approval", json=approved)
    assert response.is_success, response.text
    return f"{REQUESTS}/{name}"


def approving(space: Space) -> Steps:
    """Approves and signs the client certificate of a node that joins with a bootstrap token."""
    user, name = "system:bootstrap:real00", "system:node:joining"
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    for number, role in enumerate(
        (
            "system:node-bootstrapper",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        )
    ):
        reference = {"kind": "ClusterRole", "name": role, "apiGroup": subject["apiGroup"]}
        meta = {"name": f"{space.name}-{number}"}
        space.api.create(roles, {"metadata": meta, "roleRef": reference, "subjects": [subject]})
    spec = {
        "request": base64.b64encode(build_pem_request(name, ["system:nodes"])).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    }
    body = {"metadata": {"name": space.name}, "spec": spec}
    headers = {"impersonate-user": user, "impersonate-group": "system:authenticated"}

    def ask() -> bool:  # allowed once the server has seen the bindings
        return space.api.http.post(REQUESTS, json=body, headers=headers).is_success

    yield "asked", ask
    yield (
        "signed",
        lambda: (space.api.get(f"{REQUESTS}/{space.name}") or {})["status"].get("certificate"),
    )


def request_cleaning(space: Space) -> Steps:
    """A request goes when the certificate that somebody issued for it has expired."""
    path = _approve_request(space, build_pem_request("somebody"), "real.example.com/signer")
    soon = datetime.now(UTC) - timedelta(days=1) + timedelta(seconds=5)
    issued, _ = build_pem_authority(soon, days=1)
    certificate = base64.b64encode(issued).decode()
    space.api.patch(f"{path}/status", {"status": {"certificate": certificate}})
    assert space.api.get(path), "gone before its time"
    yield "gone", lambda: space.api.get(path) is None


def attributes_class(space: Space) -> Steps:
    """A VolumeAttributesClass is protected while it is there, and goes when nothing uses it."""
    path, name = "/apis/storage.k8s.io/v1/volumeattributesclasses", space.name
    body = {"metadata": {"name": name}, "driverName": DRIVER}
    space.api.create(path, {**body, "parameters": {"speed": "1"}})

    def is_protected() -> bool:
        metadata: Json = (space.api.get(f"{path}/{name}") or {})["metadata"]
        return "kubernetes.io/vac-protection" in metadata.get("finalizers", ())

    yield "protected", is_protected
    space.api.delete(f"{path}/{name}")
    yield "gone", lambda: space.api.get(f"{path}/{name}") is None


def resource_claim(space: Space) -> Steps:
    """A pod gets a claim from its template, whose name its status says; both go together."""
    request = {"name": "r", "exactly": {"deviceClassName": "real.example.com"}}
    space.create(TEMPLATES, "t", spec={"spec": {"devices": {"requests": [request]}}})
    wanted = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    labels = {"pending": ""}  # or it would run without its device
    spec = template(resourceClaims=wanted)["spec"]
    space.create(PODS, "p", metadata={"labels": labels}, spec=spec)
    yield "named", lambda: space.at(PODS, "p", "status", "resourceClaimStatuses")
    (named,) = space.at(PODS, "p", "status", "resourceClaimStatuses")
    claim = space.get(CLAIMS, named["resourceClaimName"])
    assert claim is not None
    assert claim["metadata"]["ownerReferences"][0]["name"] == "p"
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"]
    space.delete(PODS, "p")
    yield "gone", lambda: space.get(CLAIMS, named["resourceClaimName"]) is None


def node_ranges(space: Space) -> Steps:
    """A node gets a range of pod addresses."""
    space.api.create("/api/v1/nodes", {"metadata": {"name": "ranged"}})
    yield "a range", lambda: (space.api.get("/api/v1/nodes/ranged") or {})["spec"].get("podCIDR")


def clusterrole_aggregation(space: Space) -> Steps:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    labels = {"for": space.name}
    rule = {"apiGroups": ["real"], "resources": ["things"], "verbs": ["get"]}
    selected = {"clusterRoleSelectors": [{"matchLabels": labels}]}
    space.api.create(path, {"metadata": {"name": f"{space.name}-sum"}, "aggregationRule": selected})
    part = {"metadata": {"name": f"{space.name}-part", "labels": labels}, "rules": [rule]}
    space.api.create(path, part)
    yield "summed up", lambda: (space.api.get(f"{path}/{space.name}-sum") or {})["rules"] == [rule]


def validatingadmissionpolicy_status(space: Space) -> Steps:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"]}
    rules = [{**rule, "resources": ["deployments"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "object.spec.replicas > 'text'"}],
    }
    name = space.name
    space.api.create(path, {"metadata": {"name": name}, "spec": spec})

    def has_warnings() -> bool:
        status = (space.api.get(f"{path}/{name}") or {}).get("status") or {}
        return bool((status.get("typeChecking") or {}).get("expressionWarnings"))

    yield "warnings", has_warnings


def service_cidr(space: Space) -> Steps:
    path = "/apis/networking.k8s.io/v1/servicecidrs"
    name = space.name
    space.api.create(path, {"metadata": {"name": name}, "spec": {"cidrs": ["10.77.0.0/24"]}})

    def is_ready() -> bool:
        obj = space.api.get(f"{path}/{name}") or {}
        return bool(obj.get("status", {}).get("conditions")) and bool(obj["metadata"]["finalizers"])

    yield "ready", is_ready
    space.api.delete(f"{path}/{name}")
    yield "gone", lambda: space.api.get(f"{path}/{name}") is None


def bootstrap_tokens(space: Space) -> Steps:
    """The token cleaner deletes a bootstrap token at its time."""
    path = "/api/v1/namespaces/kube-system/secrets"
    expiry = (datetime.now(UTC) + timedelta(seconds=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "expiration": expiry}
    name = "bootstrap-token-abcdef"
    body = {"metadata": {"name": name}, "type": "bootstrap.kubernetes.io/token", "stringData": data}
    space.api.create(path, body)
    yield "gone", lambda: space.api.get(f"{path}/{name}") is None


def legacy_tokens(run_pass: Callable[[], object]) -> Case:
    """Returns a case that needs a pass of the legacy token cleaner, which `run_pass` asks for."""

    def case(space: Space) -> Steps:
        """A forgotten token becomes invalid, and one that has long been invalid is deleted."""
        tracking = "kube-apiserver-legacy-service-account-token-tracking"
        since = f"/api/v1/namespaces/kube-system/configmaps/{tracking}"
        yield "tracking", lambda: space.api.get(since)
        space.api.patch(since, {"data": {"since": "2024-01-01"}})
        references = {"secrets": [{"name": "forgotten"}, {"name": "invalid"}]}
        space.api.patch(space.path(SA, "default"), references)
        of_account = {"kubernetes.io/service-account.name": "default"}
        for name, labels in {"forgotten": {}, "invalid": {INVALID_SINCE: "2024-01-01"}}.items():
            meta = {"annotations": of_account, "labels": labels}
            kind = "kubernetes.io/service-account-token"
            space.create(SECRETS, name, metadata=meta, type=kind)
        for name in ("forgotten", "invalid"):
            yield "a token", partial(space.at, SECRETS, name, "data", "token")
        run_pass()
        yield "deleted", lambda: space.get(SECRETS, "invalid") is None
        labelled = partial(space.at, SECRETS, "forgotten", "metadata", "labels", INVALID_SINCE)
        yield "invalid", labelled

    return case


def cloud(delete_instance: Callable[[str], object]) -> Case:
    """Returns a case of a cloud in which `delete_instance` deletes the instance of a node."""

    def case(space: Space) -> Steps:
        """A Service gets a load balancer, a node is initialized, and goes with its instance."""
        space.create(SVC, "lb", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})
        yield "a balancer", lambda: space.at(SVC, "lb", "status", "loadBalancer", "ingress")
        space.delete(SVC, "lb")
        yield "the Service goes", lambda: space.get(SVC, "lb") is None
        path = "/api/v1/nodes/instance"
        taint = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
        meta = {"name": "instance", "labels": {SIMULATOR_LABEL: "true"}}
        space.api.create("/api/v1/nodes", {"metadata": meta, "spec": {"taints": [taint]}})

        def is_initialized() -> bool:
            spec = (space.api.get(path) or {})["spec"]
            keys = {taint["key"] for taint in spec.get("taints", ())}
            return UNINITIALIZED_TAINT not in keys and "providerID" in spec

        yield "initialized", is_initialized

        def has_route() -> bool:
            conditions = (space.api.get(path) or {})["status"].get("conditions", ())
            statuses = {each["type"]: each["status"] for each in conditions}
            return statuses.get("NetworkUnavailable") == "False"

        yield "a route", has_route
        delete_instance("instance")
        yield "the node goes", lambda: space.api.get(path) is None

    return case


def podgc(space: Space) -> Steps:
    space.create(PODS, "lost", spec=template()["spec"] | {"nodeName": "never-was"})
    yield "gone", lambda: space.get(PODS, "lost") is None


CASES: tuple[Case, ...] = (
    disruption,
    taint_eviction,
    ttl,
    volumes,
    ephemeral_volume,
    attach_detach,
    expansion,
    signing,
    approving,
    request_cleaning,
    attributes_class,
    resource_claim,
    clusterrole_aggregation,
    validatingadmissionpolicy_status,
    service_cidr,
    bootstrap_tokens,
    node_ranges,
)
