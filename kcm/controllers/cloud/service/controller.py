"""ServiceLB: gives Services of type LoadBalancer a load balancer of the cloud.

The finalizer of a Service keeps it until its load balancer is deleted. What the load balancer was
made for, and its nodes, are remembered per Service, so that only a change of either calls the
cloud. A Service whose loadBalancerClass is set is left to others.

Source: staging/src/k8s.io/cloud-provider/controllers/service/controller.go, Kubernetes 1.33.
Departures: 10 Services are synced at a time instead of 1, so that a slow load balancer delays no
other. A change of the nodes is a sync of each Service, not one loop over all. A restart does not
ensure load balancers again that have not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.core_v1 import LoadBalancerStatus, Node, Service
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.controllers.cloud.service.wanted import (
    FINALIZER,
    fingerprint_nodes,
    fingerprint_service,
    has_finalizer,
    matters_to_load_balancers,
    name_nodes,
    needs_cleanup,
    select_nodes,
    wants_load_balancer,
)
from kcm.sdk import (
    Change,
    CloudUse,
    Controller,
    Counter,
    DeleteLoadBalancer,
    EnsureLoadBalancer,
    GetLoadBalancer,
    ImplementedElsewhere,
    KeyPolicy,
    Options,
    Outcome,
    Patch,
    Plan,
    RetryAfter,
    UpdateLoadBalancer,
    View,
    Watch,
)

NO_NODES = "There are no available nodes for LoadBalancer"
UID, MADE_FOR, NODES = "uid", "made_for", "nodes"  # the fields of a Service's memory

UPDATES = Counter(
    "service_controller_loadbalancer_sync",
    "A metric counting the amount of times any load balancer has been configured, as an effect of "
    "service/node changes on the cluster",
)
UPDATE_ERRORS = Counter(
    "service_controller_nodesync_error",
    "A metric counting the amount of times any load balancer has been configured and errored, as "
    "an effect of node changes on the cluster",
)


class ServiceLBOptions(Options):
    """The options of the service-lb controller."""

    concurrent_service_syncs: int = Field(
        default=10,
        ge=1,
        description="The number of services that are allowed to sync concurrently. Larger number "
        "= more responsive service management, but more calls to the cloud at a time (upstream: 1)",
    )


class ServiceLBController(Controller):
    """Makes, updates and deletes load balancers. A key is a Service."""

    name = "service-lb-controller"
    short_name = "service"
    options_type = ServiceLBOptions
    options: ServiceLBOptions
    cloud = CloudUse("load_balancers")
    remembers = True
    keys = KeyPolicy(timeout=300.0, first_retry=5.0, longest_retry=300.0)
    metrics = (UPDATES, UPDATE_ERRORS)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Service, changed_service), Watch(Node, services_of_changed_node))

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_service_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        service, memory = view.lister(Service).find(key), view.memory
        if service is None:
            return _delete_of_gone(key, memory)
        if needs_cleanup(service) or not wants_load_balancer(service):
            had_one = has_finalizer(service) or memory.get(UID) == service.uid
            return _clean_up(service) if had_one else Plan(state={})
        nodes = select_nodes(view.lister(Node).list())
        if memory.get(UID) not in (None, service.uid):
            # A Service of the same name was deleted without its finalizer.
            return _delete_of_gone(key, memory, then=_ensure(service, nodes))
        if memory.get(MADE_FOR) != fingerprint_service(service):
            return _ensure(service, nodes)
        if memory.get(NODES) != fingerprint_nodes(nodes):
            return _update(service, nodes, memory)
        return Plan()


# --- which keys


def changed_service(change: Change[Service], view: View) -> Iterable[str]:
    """Yields the key of a Service if its load balancer has to be made, changed or deleted."""
    old, new = change.old, change.new
    if new is not None and needs_cleanup(new):
        yield new.key
        return
    wanted = [service for service in (old, new) if service and wants_load_balancer(service)]
    if not wanted:
        return
    prints = {fingerprint_service(service) for service in wanted}
    if len(wanted) == 1 or len(prints) == 2:
        yield change.object.key


def services_of_changed_node(change: Change[Node], view: View) -> Iterable[str]:
    """Yields all Services with a load balancer, if its nodes may have changed."""
    old, new = change.old, change.new
    if matters_to_load_balancers(old, new):
        services = view.lister(Service).list()
        yield from (service.key for service in services if wants_load_balancer(service))


# --- making load balancers


def _ensure(service: Service, nodes: tuple[Node, ...]) -> Plan:
    """Returns the plan that adds the finalizer, and then makes the load balancer."""
    plan = Plan(
        state={UID: service.uid},
        calls=[EnsureLoadBalancer(service, nodes)],
        plan_after=partial(_finish_ensuring, service, nodes),
    )
    plan.record(service, "EnsuringLoadBalancer", "Ensuring load balancer")
    if not nodes:
        plan.record(service, "UnAvailableLoadBalancer", NO_NODES, warning=True)
    return plan if has_finalizer(service) else plan.then(Patch(service, _with_finalizer))


def _finish_ensuring(service: Service, nodes: tuple[Node, ...], outcome: Outcome) -> Plan:
    (answer,) = outcome.answers
    state = _memory_of(service, nodes)
    # the Service as it was stored with the finalizer
    service = next((obj for _, obj in outcome.done if isinstance(obj, Service)), service)
    if isinstance(answer.error, ImplementedElsewhere):
        return Plan(state=state)
    if answer.error is not None:
        return _fail(service, "failed to ensure load balancer", answer.error)
    if answer.value is None:
        missing = errors.KcmError("service status returned by EnsureLoadBalancer is nil")
        return _fail(service, "", missing)
    plan = Plan(state=state).record(service, "EnsuredLoadBalancer", "Ensured load balancer")
    return plan.then(*_status_writes(service, answer.value))


def _memory_of(service: Service, nodes: tuple[Node, ...]) -> Mapping[str, str]:
    return {
        UID: service.uid,
        MADE_FOR: fingerprint_service(service),
        NODES: fingerprint_nodes(nodes),
    }


def _fail(service: Service, doing: str, error: Exception) -> Plan:
    """Returns the plan after a failed call: an Event, and another attempt later."""
    message = f"{doing}: {error}" if doing else str(error)
    wait = error.seconds if isinstance(error, RetryAfter) else None
    failure = errors.KcmError(message) if wait is None else None
    plan = Plan(error=failure, requeue_after=wait)
    what = f"Error syncing load balancer: {message}"
    return plan.record(service, "SyncLoadBalancerFailed", what, warning=True)


# --- other nodes


def _update(service: Service, nodes: tuple[Node, ...], memory: Mapping[str, str]) -> Plan:
    return Plan(
        counts=UPDATES.count(),
        calls=[UpdateLoadBalancer(service, nodes)],
        plan_after=partial(_finish_updating, service, nodes, memory),
    )


def _finish_updating(
    service: Service, nodes: tuple[Node, ...], memory: Mapping[str, str], outcome: Outcome
) -> Plan:
    error = outcome.answers[0].error
    done = Plan(state=_memory_of(service, nodes))
    if isinstance(error, ImplementedElsewhere):
        return done
    if error is None and nodes:
        message = "Updated load balancer with new hosts"
        return done.record(service, "UpdatedLoadBalancer", message)
    if error is None:
        return done.record(service, "UnAvailableLoadBalancer", NO_NODES, warning=True)
    # It is an error only if the load balancer still exists.
    return Plan(
        calls=[GetLoadBalancer(service)],
        plan_after=partial(_fail_update, service, nodes, error),
    )


def _fail_update(
    service: Service, nodes: tuple[Node, ...], error: Exception, outcome: Outcome
) -> Plan:
    (answer,) = outcome.answers
    if answer.error is None and answer.value is None:
        return Plan(state=_memory_of(service, nodes))
    # Without MADE_FOR, the next attempt ensures the load balancer, as upstream's does.
    failure = errors.KcmError(f"failed to update load balancer hosts: {error}")
    plan = Plan(state={UID: service.uid}, error=failure, counts=UPDATE_ERRORS.count())
    return plan.record(
        service,
        "UpdateLoadBalancerFailed",
        f"Error updating load balancer with new hosts {name_nodes(nodes)} [node names limited, "
        f"total number of nodes: {len(nodes)}], error: {error}",
        warning=True,
    )


# --- deleting load balancers


def _clean_up(service: Service) -> Plan:
    return Plan(calls=[GetLoadBalancer(service)], plan_after=partial(_delete_if_it_exists, service))


def _delete_if_it_exists(service: Service, outcome: Outcome) -> Plan:
    (answer,) = outcome.answers
    if answer.error is not None:
        doing = "failed to check if load balancer exists before cleanup"
        return _fail(service, doing, answer.error)
    if answer.value is None:
        return _forget(service)
    plan = Plan(calls=[DeleteLoadBalancer(service)], plan_after=partial(_finish_deleting, service))
    return plan.record(service, "DeletingLoadBalancer", "Deleting load balancer")


def _finish_deleting(service: Service, outcome: Outcome) -> Plan:
    error = outcome.answers[0].error
    if error is not None and not isinstance(error, ImplementedElsewhere):
        return _fail(service, "failed to delete load balancer", error)
    return _forget(service)


def _forget(service: Service) -> Plan:
    """Returns the plan after the load balancer is deleted."""
    plan = Plan(state={}).record(service, "DeletedLoadBalancer", "Deleted load balancer")
    if has_finalizer(service):
        plan.then(Patch(service, _without_finalizer))
    return plan.then(*_status_writes(service, LoadBalancerStatus()))


def _delete_of_gone(key: str, memory: Mapping[str, str], then: Plan | None = None) -> Plan:
    """Returns the plan that deletes the load balancer of a Service that is gone, and goes on with
    `then`.
    """
    uid = memory.get(UID)
    if not uid:
        return then or Plan()
    namespace, _, name = key.partition("/")
    gone = Service(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))

    def finish(outcome: Outcome) -> Plan:
        error = outcome.answers[0].error
        if error is not None and not isinstance(error, ImplementedElsewhere):
            failure = errors.KcmError(f"failed to delete load balancer: {error}")
            message = f"Error deleting load balancer: {error}"
            return Plan(error=failure).record(
                gone, "DeleteLoadBalancerFailed", message, warning=True
            )
        done = then or Plan(state={})
        return done.record(gone, "DeletedLoadBalancer", "Deleted load balancer")

    plan = Plan(calls=[DeleteLoadBalancer(gone)], plan_after=finish)
    return plan.record(gone, "DeletingLoadBalancer", "Deleting load balancer")


# --- writes


def _with_finalizer(obj: KubeObject) -> KubeObject:
    finalizers = obj.metadata.finalizers or []
    if FINALIZER in finalizers or obj.metadata.deletion_timestamp is not None:
        return obj  # None may be added to an object that is being deleted.
    return obj.with_metadata(finalizers=[*finalizers, FINALIZER])


def _without_finalizer(obj: KubeObject) -> KubeObject:
    finalizers = obj.metadata.finalizers or []
    if FINALIZER not in finalizers:
        return obj
    return obj.with_metadata(finalizers=[name for name in finalizers if name != FINALIZER])


def _status_writes(service: Service, wanted: LoadBalancerStatus) -> Iterable[Patch[Service]]:
    """Yields the write of the load balancer's status, unless the Service has it."""

    def change(obj: Service) -> Service:
        if (obj.status.load_balancer.ingress or []) == (wanted.ingress or []):
            return obj
        return obj.with_status(obj.status.replace(load_balancer=wanted))

    if change(service) is not service:
        yield Patch(service, change, status=True)
