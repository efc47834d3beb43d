"""Field numbers of the messages that are accepted as protobuf, from upstream's generated.proto.

A field's type is string, bytes, bool, int, another message, `[]` of one, or
`map:` (from string) to one.
"""

from __future__ import annotations

from collections.abc import Mapping

_Table = Mapping[int, tuple[str, str]]


def _table(text: str) -> _Table:
    """`1 name string, 2 spec Spec` as a table."""
    found = {}
    for part in text.split(","):
        number, name, kind = part.split()
        found[int(number)] = (name, kind)
    return found


# Messages whose JSON is not an object.
TYPES = frozenset({"Time", "MicroTime", "Quantity", "IntOrString"})

MESSAGES: Mapping[str, _Table] = {
    "Unknown": _table("1 typeMeta TypeMeta, 2 raw bytes"),
    "TypeMeta": _table("1 apiVersion string, 2 kind string"),
    "Time": _table("1 seconds int, 2 nanos int"),
    "MicroTime": _table("1 seconds int, 2 nanos int"),
    "Quantity": _table("1 string string"),
    "IntOrString": _table("1 type int, 2 intVal int, 3 strVal string"),
    "ObjectMeta": _table(
        "1 name string, 2 generateName string, 3 namespace string, 4 selfLink string,"
        "5 uid string, 6 resourceVersion string, 7 generation int, 8 creationTimestamp Time,"
        "9 deletionTimestamp Time, 10 deletionGracePeriodSeconds int, 11 labels map:string,"
        "12 annotations map:string, 13 ownerReferences []OwnerReference, 14 finalizers []string"
    ),
    "OwnerReference": _table(
        "1 kind string, 3 name string, 4 uid string, 5 apiVersion string, 6 controller bool,"
        "7 blockOwnerDeletion bool"
    ),
    "ObjectReference": _table(
        "1 kind string, 2 namespace string, 3 name string, 4 uid string, 5 apiVersion string,"
        "6 resourceVersion string, 7 fieldPath string"
    ),
    "DeleteOptions": _table(
        "1 gracePeriodSeconds int, 2 preconditions Preconditions, 3 orphanDependents bool,"
        "4 propagationPolicy string, 5 dryRun []string"
    ),
    "Preconditions": _table("1 uid string, 2 resourceVersion string"),
    "Scale": _table("1 metadata ObjectMeta, 2 spec ScaleSpec, 3 status ScaleStatus"),
    "ScaleSpec": _table("1 replicas int"),
    "ScaleStatus": _table("1 replicas int, 2 selector string"),
    "Binding": _table("1 metadata ObjectMeta, 2 target ObjectReference"),
    "Eviction": _table("1 metadata ObjectMeta, 2 deleteOptions DeleteOptions"),
    "Namespace": _table("1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus"),
    "NamespaceSpec": _table("1 finalizers []string"),
    "NamespaceStatus": _table("1 phase string"),
    "Lease": _table("1 metadata ObjectMeta, 2 spec LeaseSpec"),
    "LeaseSpec": _table(
        "1 holderIdentity string, 2 leaseDurationSeconds int, 3 acquireTime MicroTime,"
        "4 renewTime MicroTime, 5 leaseTransitions int, 6 strategy string, 7 preferredHolder string"
    ),
    "Event": _table(
        "1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason string,"
        "4 message string, 5 source EventSource, 6 firstTimestamp Time, 7 lastTimestamp Time,"
        "8 count int, 9 type string, 10 eventTime MicroTime, 11 series EventSeries,"
        "12 action string, 13 related ObjectReference, 14 reportingComponent string,"
        "15 reportingInstance string"
    ),
    "EventSource": _table("1 component string, 2 host string"),
    "EventSeries": _table("1 count int, 2 lastObservedTime MicroTime"),
}

# (apiVersion, kind) to message; DeleteOptions come in many a group's version.
KINDS: Mapping[tuple[str, str], str] = {
    ("", "DeleteOptions"): "DeleteOptions",
    ("autoscaling/v1", "Scale"): "Scale",
    ("v1", "Binding"): "Binding",
    ("policy/v1", "Eviction"): "Eviction",
    ("v1", "Namespace"): "Namespace",
    ("v1", "Event"): "Event",
    ("coordination.k8s.io/v1", "Lease"): "Lease",
}
