"""Cases of what goes with something else, and of what is counted."""

from __future__ import annotations

from typing import Any

from tests.real.client import Api, Json, Space
from tests.real.objects import (
    CM,
    DEPLOY,
    JOBS,
    PAGE,
    PODS,
    QUOTA,
    RS,
    TEMPLATES,
    THINGS,
    Steps,
    owner,
    template,
    workload,
)
from tests.real.runner import Case


def define_kind(api: Api, plural: str = "things") -> str:
    """Defines a custom kind unless it is there, and returns its path in a space."""
    group = THINGS.split("/", maxsplit=1)[0]
    kind = plural.rstrip("s").capitalize()
    if api.get(f"{PAGE}/{plural}.{group}") is None:
        schema = {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        }
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        names = {"plural": plural, "singular": plural.rstrip("s"), "kind": kind}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
        api.create(PAGE, {"metadata": {"name": f"{plural}.{group}"}, "spec": spec})
    return THINGS.replace("things", plural)


def _create_custom(space: Space, plural: str, name: str, **fields: Any) -> Json:
    head = {"apiVersion": THINGS.rpartition("/")[0], "kind": plural.rstrip("s").capitalize()}
    return space.create(THINGS.replace("things", plural), name, **head, **fields)


def _is_served(space: Space, plural: str) -> bool:
    group, version, _ = THINGS.split("/")
    page = space.api.get(f"/apis/{group}/{version}") or {}
    return any(each["name"] == plural for each in page.get("resources", ()))


def namespace(space: Space) -> Steps:
    """A namespace takes its content along: custom objects, devices' claims, and Jobs with pods."""
    kind = define_kind(space.api, "leftovers")
    yield "served", lambda: _is_served(space, "leftovers")
    _create_custom(space, "leftovers", "custom")
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]}
    space.create(TEMPLATES, "claim", spec={"spec": {"devices": devices}})
    space.create(DEPLOY, "web", spec=workload("web", 2))
    space.create(JOBS, "long", spec={"template": template({"pending": ""}, restartPolicy="Never")})
    yield "a Job's pod", lambda: space.pods(**{"batch.kubernetes.io/job-name": "long"})
    space.api.delete(f"/api/v1/namespaces/{space.name}")
    yield "gone", lambda: space.api.get(f"/api/v1/namespaces/{space.name}") is None
    for left in (kind, TEMPLATES, JOBS, PODS, CM):
        assert space.api.list(space.path(left)) == [], left


def garbage_background(space: Space) -> Steps:
    space.create(DEPLOY, "web", spec=workload("web", 2))
    yield "two pods", lambda: len(space.pods(app="web")) == 2
    space.delete(DEPLOY, "web")
    yield "no pods", lambda: not space.pods(app="web")
    yield "no sets", lambda: not space.api.list(space.path(RS))


def garbage_foreground(space: Space) -> Steps:
    space.create(DEPLOY, "web", spec=workload("web", 2))
    yield "two pods", lambda: len(space.pods(app="web")) == 2
    space.delete(DEPLOY, "web", "Foreground")
    yield "gone", lambda: space.get(DEPLOY, "web") is None
    assert not space.api.list(space.path(RS))


def garbage_orphan(space: Space) -> Steps:
    space.create(DEPLOY, "web", spec=workload("web", 2))
    yield "two pods", lambda: len(space.pods(app="web")) == 2
    space.delete(DEPLOY, "web", "Orphan")
    yield "gone", lambda: space.get(DEPLOY, "web") is None
    (left,) = space.api.list(space.path(RS))
    assert not left["metadata"].get("ownerReferences")


def garbage_custom(space: Space) -> Steps:
    """Dependents of a custom object go with it, and so does a custom dependent."""
    kind = define_kind(space.api)
    yield "served", lambda: _is_served(space, "things")
    thing = _create_custom(space, "things", "owner")
    owners = {"ownerReferences": owner("Thing", "real.example.com/v1", thing)}
    space.create(CM, "dependent", metadata=owners)
    _create_custom(space, "things", "dependent", metadata=owners)
    space.delete(kind, "owner")
    yield "the ConfigMap goes", lambda: space.get(CM, "dependent") is None
    yield "the custom one goes", lambda: space.get(kind, "dependent") is None


def resourcequota(space: Space) -> Steps:
    hard = {"pods": "2", "count/configmaps": "10", "count/things.real.example.com": "5"}
    space.create(QUOTA, "q", spec={"hard": hard})
    yield "hard", lambda: space.at(QUOTA, "q", "status", "hard") == hard
    space.create(RS, "web", spec=workload("web", 4))
    yield "two used", lambda: space.at(QUOTA, "q", "status", "used", "pods") == "2"
    assert len(space.pods(app="web")) == 2
    space.patch(RS, "web", {"spec": {"replicas": 0}})
    yield "none used", lambda: space.at(QUOTA, "q", "status", "used", "pods") == "0"


CASES: tuple[Case, ...] = (
    namespace,
    garbage_background,
    garbage_foreground,
    garbage_orphan,
    garbage_custom,
    resourcequota,
)
