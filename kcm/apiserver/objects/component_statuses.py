"""ComponentStatuses: whether Redis, the controllers and the scheduler work.

They have upstream's names, so that what reads them finds them: `etcd-0` is Redis,
`controller-manager` the managers and workers together, `scheduler` the workers that take its queue.
Each is judged by what every process of kcm reports, its heartbeats.

Source: pkg/registry/core/componentstatus/rest.go, Kubernetes 1.33. Departure: for an unknown
component, the response is 404, not 500.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kcm import errors
from kcm.api.core_v1.nodes import ComponentCondition, ComponentStatus
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.computed_kinds import COMPONENT_DEPRECATION, COMPONENT_STATUS
from kcm.apiserver.http.responses import ApiRequest, Response
from kcm.apiserver.http_errors import MethodNotAllowed, PathNotFound
from kcm.apiserver.objects import lists
from kcm.apiserver.objects.selection import ObjectSelection
from kcm.coordination.presence import DEAD_AFTER, Member, members
from kcm.redisio import RedisIO
from kcm.store import Store

_OK = "ok"
_SCHEDULER_QUEUE = "core"  # the Celery queue of the scheduler's tasks
_Check = Callable[[RedisIO], str]  # what is wrong, "" if nothing is


def respond(store: Store, request: ApiRequest) -> Response:
    """Returns a response with one status or with all that the selectors match.

    Raises BadRequest, MethodNotAllowed, NotFound and PathNotFound.
    """
    info = request.info
    if info.subresource:
        raise PathNotFound
    if request.method != "GET" or request.flag("watch"):
        raise MethodNotAllowed
    if info.name:
        if info.name not in _CHECKS:
            raise errors.NotFound.of(info.resource.name, info.name)
        return lists.entry_response(
            request, _entry(store, info.name), warnings=[COMPONENT_DEPRECATION]
        )
    selection = ObjectSelection.of(info, request.query)
    entries = [entry for name in _CHECKS if selection.matches(entry := _entry(store, name))]
    return lists.items_response(request, entries, {}, [COMPONENT_DEPRECATION])


def _entry(store: Store, name: str) -> Entry:
    fault = _find_fault(store.io, _CHECKS[name])
    healthy = ComponentCondition(
        type="Healthy", status="False" if fault else "True", message=fault or _OK
    )
    status = ComponentStatus(metadata=ObjectMeta(name=name), conditions=[healthy])
    return Entry.build(COMPONENT_STATUS, status)


def _find_fault(io: RedisIO, check: _Check) -> str:
    """Returns what is wrong, or that Redis does not answer."""
    try:
        return check(io)
    except errors.KcmError as error:
        return error.message


def _check_redis(io: RedisIO) -> str:
    io.execute("PING")
    return ""


def _check_controllers(io: RedisIO) -> str:
    alive = members(io)
    for kind in ("manager", "worker"):
        if not any(member.kind == kind for member in alive):
            return _silent(f"no {kind}")
    return ""


def _check_scheduler(io: RedisIO) -> str:
    alive = members(io)
    if not any(member.kind == "manager" for member in alive):
        return _silent("no manager")
    if not any(_takes_pods(member) for member in alive):
        return _silent(f"no worker of the queue {_SCHEDULER_QUEUE}")
    return ""


def _takes_pods(member: Member) -> bool:
    return member.kind == "worker" and _SCHEDULER_QUEUE in member.queues


def _silent(who: str) -> str:
    return f"{who} sent a heartbeat within {DEAD_AFTER:g} s"


_CHECKS: Mapping[str, _Check] = {
    "scheduler": _check_scheduler,
    "controller-manager": _check_controllers,
    "etcd-0": _check_redis,
}
