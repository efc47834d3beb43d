"""The writes of a node, checked by NodeRestriction."""

from __future__ import annotations

from kcm import errors
from kcm.api.core_v1 import Node, Pod, Taint
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.auth.authorizer import AlwaysDeny, Caller
from kcm.apiserver.auth.node.restriction import (
    NodeRestriction,
    NodeWrite,
    WantedToken,
)
from kcm.testing.builders import node as build_node
from tests.unit.apiserver.auth.caches import FakeHub

MY_NODE = User("system:node:mynode", groups=("system:nodes",))
NODE = build_node("mynode").with_metadata(uid="mynode-uid", labels=None)
UNEXPECTED = "unexpected operation"
ITSELF = "spec.nodeName set to itself"


def a_pod(name: str, node: str | None, **spec: object) -> Pod:
    """Returns upstream's makeTestPod without the mirror's metadata."""
    body = {"metadata": {"namespace": "ns", "name": name, "uid": "pod-uid"}}
    return Pod.model_validate({**body, "spec": {"nodeName": node, "containers": [], **spec}})


def mirror(name: str, node: str | None, **spec: object) -> Pod:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node or "", "uid": f"{node}-uid",
             "controller": True}  # fmt: skip
    made = a_pod(name, node, **spec)
    return Pod.model_validate(
        made.model_dump(by_alias=True, exclude_none=True)
        | {
            "metadata": {
                "namespace": "ns",
                "name": name,
                "uid": "pod-uid",
                "annotations": {"kubernetes.io/config.mirror": "true"},
                "ownerReferences": [owner],
            }
        }
    )


PODS = {
    "mirror pod bound to self": mirror("mymirrorpod", "mynode"),
    "mirror pod bound to another": mirror("othermirrorpod", "othernode"),
    "mirror pod unbound": mirror("unboundmirrorpod", None),
    "normal pod bound to self": a_pod("mypod", "mynode"),
    "normal pod bound to another": a_pod("otherpod", "othernode"),
    "normal pod unbound": a_pod("unboundpod", None),
}


def check(
    operation: str,
    new: KubeObject | None,
    old: KubeObject | None = None,
    *,
    subresource: str = "",
    token: WantedToken | None = None,
    name: str | None = None,
    user: User = MY_NODE,
    there: tuple[KubeObject, ...] = (),
    caller: Caller | None = None,
) -> str:
    """Returns the message of the refusal, "" for a write that is allowed."""
    about = new or old
    assert about is not None
    hub = FakeHub(NODE, *PODS.values(), *there)

    def find(model: type[KubeObject], key: str) -> KubeObject | None:
        entry = hub.cache(model.resource).get(key)
        return None if entry is None else entry.obj

    gone = None if operation == "DELETE" else new
    write = NodeWrite(
        operation,
        about.resource,
        about.namespace,
        about.name if name is None else name,
        subresource,
        gone,
        old,
        token,
    )
    try:
        NodeRestriction(find).check(caller or Caller(user, AlwaysDeny()), write)
    except (errors.Forbidden, errors.NotFound) as error:
        return error.message
    return ""


# --- pods; the names of the cases are upstream's


def tainted(value: str) -> Node:
    return NODE.with_spec(NODE.spec.replace(taints=[Taint(key="mykey", value=value)]))
