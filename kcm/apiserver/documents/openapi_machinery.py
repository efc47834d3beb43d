"""The structs that requests and answers have besides objects, and that have no model.

`STRUCTS` has, by the name of a schema, its description and its fields: `name:type`, where the type
is a primitive one, the name of a schema, or either with `[]` before it. Without a type, a field is
a string.
"""

from __future__ import annotations

from collections.abc import Mapping

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
DELETE_OPTIONS, STATUS, PATCH = f"{META}.DeleteOptions", f"{META}.Status", f"{META}.Patch"
API_GROUP, API_GROUPS = f"{META}.APIGroup", f"{META}.APIGroupList"
API_VERSIONS, API_RESOURCES = f"{META}.APIVersions", f"{META}.APIResourceList"
WATCH_EVENT = f"{META}.WatchEvent"
VERSION = "io.k8s.apimachinery.pkg.version.Info"
SCALE = "io.k8s.api.autoscaling.v1.Scale"
EVICTION = "io.k8s.api.policy.v1.Eviction"
TOKEN_REQUEST = "io.k8s.api.authentication.v1.TokenRequest"
_BOUND = "io.k8s.api.authentication.v1.BoundObjectReference"
_KIND = "apiVersion kind"
_OBJECT = f"{_KIND} metadata:{META}.ObjectMeta"

STRUCTS: Mapping[str, tuple[str, str]] = {
    DELETE_OPTIONS: (
        "How to delete an object, and under which preconditions.",
        f"{_KIND} dryRun:[]string gracePeriodSeconds:int64 orphanDependents:boolean "
        f"preconditions:{META}.Preconditions propagationPolicy",
    ),
    f"{META}.Preconditions": (
        "What must be true of an object that is deleted.",
        "uid resourceVersion",
    ),
    STATUS: (
        "The outcome of a request that returns no object.",
        f"{_KIND} metadata:{META}.ListMeta code:int32 message reason status "
        f"details:{META}.StatusDetails",
    ),
    f"{META}.StatusDetails": (
        "What a Status is about.",
        f"name group kind uid causes:[]{META}.StatusCause retryAfterSeconds:int32",
    ),
    f"{META}.StatusCause": ("One cause of a failure.", "reason message field"),
    WATCH_EVENT: ("One change, as a watch tells it.", "type object:object"),
    API_VERSIONS: (
        "The versions of the core group.",
        f"{_KIND} versions:[]string serverAddressByClientCIDRs:[]{META}.ServerAddressByClientCIDR",
    ),
    f"{META}.ServerAddressByClientCIDR": (
        "The address by which clients in a range reach the server.",
        "clientCIDR serverAddress",
    ),
    API_GROUPS: ("The API groups.", f"{_KIND} groups:[]{API_GROUP}"),
    API_GROUP: (
        "An API group with its versions.",
        f"{_KIND} name preferredVersion:{META}.GroupVersionForDiscovery "
        f"serverAddressByClientCIDRs:[]{META}.ServerAddressByClientCIDR "
        f"versions:[]{META}.GroupVersionForDiscovery",
    ),
    f"{META}.GroupVersionForDiscovery": ("A version of an API group.", "groupVersion version"),
    API_RESOURCES: (
        "The resources of an API group in one version.",
        f"{_KIND} groupVersion resources:[]{META}.APIResource",
    ),
    f"{META}.APIResource": (
        "A resource, or a subresource.",
        "name singularName namespaced:boolean kind verbs:[]string shortNames:[]string "
        "categories:[]string group version storageVersionHash",
    ),
    VERSION: (
        "The version of the server.",
        "major minor gitVersion gitCommit gitTreeState buildDate goVersion compiler platform",
    ),
    SCALE: (
        "How many replicas an object has, and is to have.",
        f"{_OBJECT} spec:{SCALE}Spec status:{SCALE}Status",
    ),
    f"{SCALE}Spec": ("The wanted number of replicas.", "replicas:int32"),
    f"{SCALE}Status": ("The present replicas.", "replicas:int32 selector"),
    EVICTION: (
        "The wish that a pod is deleted, unless a PodDisruptionBudget forbids that.",
        f"{_OBJECT} deleteOptions:{DELETE_OPTIONS}",
    ),
    TOKEN_REQUEST: (
        "The wish for a token of a service account.",
        f"{_OBJECT} spec:{TOKEN_REQUEST}Spec status:{TOKEN_REQUEST}Status",
    ),
    f"{TOKEN_REQUEST}Spec": (
        "The wanted token.",
        f"audiences:[]string boundObjectRef:{_BOUND} expirationSeconds:int64",
    ),
    f"{TOKEN_REQUEST}Status": ("The token.", "expirationTimestamp:time token"),
    _BOUND: ("The object with which a token ends.", "apiVersion kind name uid"),
}
