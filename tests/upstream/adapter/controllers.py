"""Where upstream's cases of small controllers and of those of clouds call kcm."""

from __future__ import annotations

import base64
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509

from kcm.api.certificates_v1 import FAILED, CertificateSigningRequest, has_condition
from kcm.api.core_v1 import Node, NodeAddress, Secret, Service
from kcm.api.storage_v1 import VolumeAttachment
from kcm.apimachinery.meta_v1 import KubeObject, format_time
from kcm.controllers.bootstrap.bootstrapsigner import CLUSTER_INFO, BootstrapSignerController
from kcm.controllers.bootstrap.tokencleaner import TokenCleanerController
from kcm.controllers.certificates.csrsigning import CSRSigningController, CSRSigningOptions
from kcm.controllers.cloud.cloudnode import CloudNodeController
from kcm.controllers.cloud.cloudnode.nodes import reconcile_labels
from kcm.controllers.cloud.cloudnodelifecycle import CloudNodeLifecycleController
from kcm.controllers.cloud.route import ROUTES, NodeRouteController, NodeRouteOptions
from kcm.controllers.cloud.service import ServiceLBController
from kcm.controllers.cloud.service.wanted import (
    fingerprint_service,
    has_finalizer,
    matters_to_load_balancers,
    needs_cleanup,
    select_nodes,
    wants_load_balancer,
)
from kcm.controllers.volumes.attachdetach.controller import AttachDetachOptions
from kcm.controllers.volumes.persistentvolumeexpander import PersistentVolumeExpanderController
from kcm.helpers.bootstrap_tokens import read_signing_token
from kcm.reconcile.cloudprovider.interface import CloudError, InstanceMetadata, Route
from kcm.reconcile.plan import Delete, UpdateStatus
from kcm.testing.storage_builders import claim, csi_volume
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World
from tests.signing_requests import build_pem_request, signing_request, write_authority
from tests.unit.controllers import attachdetach_world as attaching
from tests.unit.controllers.clouds import CloudWorld
from tests.upstream.adapter import Json, decode, to_json
from tests.upstream.cases import Case

_HOUR = timedelta(hours=1)


# --- Certificates and bootstrap tokens.


def sign(case: Case) -> Json:
    """Returns whether a request is written, and with a certificate or as failed."""
    request = decode(case["csr"], "certificates.k8s.io/v1", "CertificateSigningRequest")
    new = _sign(request, _HOUR)
    if new is None:
        return {"written": False, "certificate": False, "failed": False}
    issued = bool(new.status.certificate)
    return {"written": True, "certificate": issued, "failed": has_condition(new, FAILED)}


def measure_duration(case: Case) -> float:
    """Returns the seconds for which an issued certificate is valid."""
    pem, usages = build_pem_request(), ["client auth", "digital signature"]
    name = "kubernetes.io/kube-apiserver-client"
    request = signing_request(pem, usages, name, expiration_seconds=case["seconds"])
    approved = decode({**to_json(request), "status": {"conditions": [
        {"type": "Approved", "status": "True"}
    ]}})  # fmt: skip
    new = _sign(approved, timedelta(seconds=case["ttl"]))
    assert new is not None
    issued = x509.load_pem_x509_certificate(base64.b64decode(new.status.certificate or ""))
    return (issued.not_valid_after_utc - NOW).total_seconds()


def _sign(request: KubeObject, longest: timedelta) -> CertificateSigningRequest | None:
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = write_authority(Path(folder), NOW)
        options = CSRSigningOptions(
            cluster_signing_cert_file=str(certificate),
            cluster_signing_key_file=str(key),
            cluster_signing_duration=longest,
        )
        plan = CSRSigningController(options).reconcile(request.key, FakeView(request))
    written = [write.new for write in plan.writes if isinstance(write, UpdateStatus)]
    assert all(isinstance(new, CertificateSigningRequest) for new in written)
    return written[0] if written else None  # type: ignore[return-value] # asserted above


def read_token(case: Case) -> Json:
    """Returns id and secret of a token with which may be signed, or None."""
    token = read_signing_token(_secret(case), datetime.fromisoformat(case["now"]))
    return None if token is None else list(token)


def sign_cluster_info(case: Case) -> Json:
    """Returns the data that is written into cluster-info, None if nothing is."""
    view = FakeView(*map(decode, case["objects"]))
    written: list[Any] = BootstrapSignerController().reconcile(CLUSTER_INFO, view).writes
    return written[0].new.data if written else None


def clean_token(case: Case) -> Json:
    """Returns whether a token is deleted, and the seconds after which it is looked at again."""
    secret, now = _secret(case), datetime.fromisoformat(case["now"])
    plan = TokenCleanerController().reconcile(secret.key, FakeView(secret, now=now))
    deleted = any(isinstance(write, Delete) for write in plan.writes)
    return {"deleted": deleted, "again": plan.requeue_after}


def _secret(case: Case) -> Secret:
    secret = decode(case["secret"])
    assert isinstance(secret, Secret)
    return secret


# --- Volumes.


def expand(case: Case) -> Json:
    """Returns whether a sync fails, and the annotations that it writes."""
    view = FakeView(*map(decode, case["objects"]))
    plan = PersistentVolumeExpanderController().reconcile(case["key"], view)
    written: list[Any] = plan.writes
    noted = [write.new.annotations for write in written if write.new.annotations]
    return {"error": plan.error is not None, "annotations": noted[0] if noted else None}


# --- Attaching.


def attach(case: Case) -> Json:
    """Returns what a sync attaches, detaches and tells about one volume of a CSI driver."""
    modes = ["ReadWriteMany"] if case.get("shared") else ["ReadWriteOnce"]
    data = claim(volume_name="disk", status={"phase": "Bound"}, access_modes=modes)
    disk = csi_volume(bound_to=data, access_modes=modes)
    far = claim(namespace="ns2", volume_name="far", status={"phase": "Bound"})
    objects: list[KubeObject] = [data, disk, far, csi_volume("far", handle="disk", bound_to=far)]
    memory: dict[str, str] = {}
    for name, state in case["nodes"].items():
        taints = [attaching.TAINT] if state.get("out_of_service") else []
        listed, used = state.get("attached", False), state.get("in_use", False)
        ready = state.get("ready", True)
        objects.append(
            attaching.node(name, attached=listed, in_use=used, taints=taints, ready=ready)
        )
        if "attachment" in state:
            objects.append(attaching.attachment(name, attached=state["attachment"]))
        if "waited" in state:
            since = NOW - timedelta(seconds=state["waited"])
            memory[f"detach-since {name}"] = format_time(since)
        for text in state.get("pods", ()):
            namespace, _, pod = text.partition("/")
            near = "default" if namespace == "ns1" else namespace
            objects.append(attaching.user(pod, on=name, namespace=near))
    options = AttachDetachOptions(disable_force_detach_on_timeout=not case.get("forces", True))
    plan = attaching.sync(*objects, memory=memory, options=options)
    before = {one.spec.node_name for one in objects if isinstance(one, VolumeAttachment)}
    after, _ = attaching.settle(World(*objects), plan)
    return {
        "attach": [name for name in after if name.rstrip("*") not in before],
        "detach": [name.rstrip("*") for name in after if name.endswith("*")],
        "events": sorted(message for _, _, message in attaching.events(plan)),
    }


# --- Nodes of clouds.


def sync_cloud_node(case: Case) -> Json:
    """Returns the node after a sync, and whether that failed."""
    node, known = _node(case["node"]), case["cloud"]
    world = CloudWorld(CloudNodeController(), node)
    if "error" in known:
        world.memory_cloud.failures["metadata"] = CloudError(known["error"])
    else:
        world.memory_cloud.instances[node.name] = InstanceMetadata(
            provider_id=known.get("ProviderID", ""),
            instance_type=known.get("InstanceType", ""),
            node_addresses=_addresses(known.get("NodeAddresses")),
            zone=known.get("Zone", ""),
            region=known.get("Region", ""),
            additional_labels=known.get("AdditionalLabels", {}),
        )
    world.sync(node.key)
    return {"error": world.error is not None, "node": to_json(*world.of(Node))}


def reconcile_node_labels(case: Case) -> Json:
    """Returns the labels of a node after they were corrected."""
    return reconcile_labels(_node(case["node"])).labels


def monitor_node(case: Case) -> Json:
    """Returns the node after the cloud was asked, None if it was deleted."""
    node, known = _node(case["node"]), case["cloud"]
    world = CloudWorld(CloudNodeLifecycleController(), node)
    cloud = world.memory_cloud
    if known["exists"]:
        cloud.instances[node.name] = InstanceMetadata()
    if known["shutdown"]:
        cloud.shut_down.add(node.name)
    for call, error in (("exists", known["eerr"]), ("shutdown", known["serr"])):
        if error:
            cloud.failures[call] = CloudError(error)
    world.sync(node.key)
    left = world.of(Node)
    return {"deleted": not left, "node": to_json(*left) if left else None}


def sync_routes(case: Case) -> Json:
    """Returns the cloud's routes after a sync, and the nodes whose network is available."""
    nodes = [_node(node) for node in case["nodes"]]
    world = CloudWorld(_routes(case["cidrs"]), *nodes)
    world.memory_cloud.stored_routes = [_route(route) for route in case["routes"]]
    world.sync(ROUTES)
    conditions = {node.name: _network(node) for node in world.of(Node)}
    return {
        "routes": sorted(map(_tell_route, world.memory_cloud.stored_routes)),
        "available": [conditions[node.name][:1] == ["False"] for node in nodes],
    }


def tell_routes(routes: list[Json]) -> list[Any]:
    """Returns routes as `sync_routes` tells them."""
    return sorted(_tell_route(_route(route)) for route in routes)


def set_networking(case: Case) -> Json:
    """Returns the condition that is written, None if nothing is."""
    node = _node(case["node"])
    world = CloudWorld(_routes("10.244.0.0/16"), node)
    if not case["created"]:
        world.memory_cloud.failures["create"] = CloudError("no")
    before = to_json(*world.of(Node))
    world.sync(ROUTES)
    (after,) = world.of(Node)
    return None if to_json(after) == before else _network(after)


def is_responsible(case: Case) -> bool:
    """Reports whether a route that no node has is deleted."""
    world = CloudWorld(_routes(case["cidrs"]))
    world.memory_cloud.stored_routes = [_route(case["route"])]
    world.sync(ROUTES)
    return not world.memory_cloud.stored_routes


def _routes(cidrs: str) -> NodeRouteController:
    return NodeRouteController(NodeRouteOptions(allocate_node_cidrs=True, cluster_cidr=cidrs))


def _route(route: Json) -> Route:
    return Route(
        route["Name"],
        route["TargetNode"],
        route["DestinationCIDR"],
        _addresses(route.get("TargetNodeAddresses")),
        enable_node_addresses=route.get("EnableNodeAddresses", False),
        blackhole=route.get("Blackhole", False),
    )


def _tell_route(route: Route) -> Any:
    addresses = [f"{one.type} {one.address}" for one in route.target_node_addresses]
    return (route.target_node, route.destination_cidr, addresses)


def _network(node: Node) -> list[Any]:
    for one in node.status.conditions or ():
        if one.type == "NetworkUnavailable":
            return [one.status, one.reason, one.message]
    return []


# --- Load balancers.


def wants_cleanup(case: Case) -> bool:
    """Reports whether the load balancer of a Service has to be deleted."""
    return needs_cleanup(_service(case["service"]))


def wants_update(case: Case) -> bool:
    """Reports whether the change of a Service matters to its load balancer."""
    old, new = _service(case["old"]), _service(case["new"])
    if not wants_load_balancer(old) and not wants_load_balancer(new):
        return False
    if wants_load_balancer(old) != wants_load_balancer(new):
        return True
    return fingerprint_service(old) != fingerprint_service(new)


def node_matters(case: Case) -> bool:
    """Reports whether the change of a node matters to load balancers."""
    return matters_to_load_balancers(_node(case["old"]), _node(case["new"]))


def is_selected(case: Case) -> bool:
    """Reports whether load balancers have a node."""
    return bool(select_nodes([_node(case["node"])]))


def sync_balancer(case: Case) -> Json:
    """Returns the calls of a sync, and whether it writes status and finalizer."""
    service = _service(case["service"])
    world = CloudWorld(ServiceLBController(), service)
    if case["exists"]:
        world.memory_cloud.balancers[service.uid] = ()
    world.sync(service.key)
    calls = [call for call in world.take_calls() if call in ("ensure", "delete")]
    left = world.of(Service)
    if not left:
        return {"calls": calls, "status": False, "finalizer": True}
    return {
        "calls": calls,
        "status": left[0].status != service.status,
        "finalizer": has_finalizer(left[0]) != has_finalizer(service),
    }


# --- Parts.


def _node(obj: Json) -> Node:
    node = decode(obj)
    assert isinstance(node, Node)
    return node


def _service(obj: Json) -> Service:
    service = decode(obj)
    assert isinstance(service, Service)
    return service


def _addresses(given: Json) -> tuple[NodeAddress, ...]:
    return tuple(NodeAddress(type=one["type"], address=one["address"]) for one in given or ())
