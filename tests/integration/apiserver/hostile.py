"""Bodies that once stopped an API server, and what the server may spend on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.integration.apiserver.definitions import SPEC

GROUP = "hostile.example.com"
NAMESPACE = "/api/v1/namespaces/eve"
MAPS = f"{NAMESPACE}/configmaps"
PODS = f"{NAMESPACE}/pods"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/eve/roles"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TRAPS = f"/apis/{GROUP}/v1/namespaces/eve/traps"

JSON = "application/json"
YAML = "application/yaml"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

MEGABYTE = 1_000_000
ENTRIES = 8_000
TIMED_OUT = 504  # a second of CPU can take a busy machine more than the minute of a request


@dataclass(frozen=True)
class Hostile:
    """A request, the acceptable codes of the response, and the server's budget."""

    name: str
    method: str
    path: str
    content_type: str
    body: Callable[[], bytes]
    codes: tuple[int, ...] = (400,)
    at_once: int = 1
    seconds: float = 8.0  # of CPU, for each of those at once
    memory: int = 500  # MiB beyond what the server had, and a third for each of those at once


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}


def aliases() -> bytes:
    text = b"x" * MEGABYTE
    return b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\nb: &a %s\nc: [%s]\n" % (
        text,
        b"*a," * 500_000,
    )


def bomb() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines).encode()


def deep(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def deep_config_map(depth: int) -> bytes:
    return b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"d"},"x":%s}' % deep(depth)


def build_add_patch(value: bytes) -> bytes:
    return b'[{"op":"add","path":"/x","value":%s}]' % value


def build_copy_patch(times: int, source: str = "/data", to: str = "/data/c") -> bytes:
    return encode([{"op": "copy", "from": source, "path": f"{to}{n}"} for n in range(times)])


def long_copies() -> bytes:
    return encode(
        [
            {"op": "add", "path": "/data/a", "value": "x" * MEGABYTE},
            *({"op": "copy", "from": "/data/a", "path": f"/data/c{n}"} for n in range(9_000)),
        ]
    )


def environment(value: str, count: int = ENTRIES) -> list[dict[str, str]]:
    return [{"name": f"V{n}", "value": value} for n in range(count)]


def pod(name: str, count: int) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "env": environment("old", count)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def build_ordered_patch() -> bytes:
    names = [{"name": f"V{n}"} for n in range(ENTRIES)]
    container = {
        "name": "c",
        "$setElementOrder/env": names[::-1],
        "env": environment("old")[::-1],  # as it is: the rest of the work is in the merging
    }
    return encode({"spec": {"containers": [container]}})


def definition(plural: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def build_doubling_rule(times: int) -> str:
    """Returns a rule that doubles its text so many times."""
    inner = f"size(x{times}) > 0"
    for n in range(times, 0, -1):
        inner = f"[x{n - 1} + x{n - 1}].all(x{n}, {inner})"
    return f"[self].all(x0, {inner})"


def traps() -> dict[str, Any]:
    """Returns a definition with fields that are costly to check."""
    text: dict[str, Any] = {"type": "string"}
    return definition(
        "traps",
        {
            "pattern": text | {"pattern": "^(a+)+$"},
            "find": text
            | {"x-kubernetes-validations": [{"rule": "self.find('^(a+)+$') == 'aaa'"}]},
            "double": text
            | {"maxLength": 800, "x-kubernetes-validations": [{"rule": build_doubling_rule(24)}]},
            "cron": SPEC,
        },
    )


def trap(field: str, value: Any) -> bytes:
    return encode(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Traps",
            "metadata": {"name": field},
            "spec": {field: value},
        }
    )


def classes() -> bytes:
    return encode(definition("classes", {"a": {"type": "string", "pattern": r"\p{L}" * 100_000}}))


def role() -> bytes:
    rule = {
        "verbs": [f"v{n}" for n in range(100)],
        "apiGroups": [f"g{n}" for n in range(100)],
        "resources": [f"r{n}" for n in range(100)],
    }
    return encode(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "wide"},
            "rules": [rule],
        }
    )


def owners(count: int = 300_000) -> bytes:
    return encode(config_map(ownerReferences=[{}] * count))


def controllers() -> bytes:
    owner = {"apiVersion": "v1", "kind": "A", "name": "b", "uid": "c", "controller": True}
    return encode(config_map(ownerReferences=[owner] * 15_000))


def message(number: int, value: bytes) -> bytes:
    length, sign = b"", len(value)
    while sign > 127:
        length, sign = length + bytes([sign & 127 | 128]), sign >> 7
    return bytes([number << 3 | 2]) + length + bytes([sign]) + value


def empty_items(count: int = 1_400_000) -> bytes:
    meta = message(1, b"a") + bytes([13 << 3 | 2, 0]) * count
    kind = message(1, message(1, b"v1") + message(2, b"ConfigMap"))
    return b"k8s\x00" + kind + message(2, message(1, meta))


def far_away() -> bytes:
    created = b"\x08" + b"\xff" * 8 + b"\x7f"
    meta = message(1, b"a") + message(8, created)
    kind = message(1, message(1, b"v1") + message(2, b"ConfigMap"))
    return b"k8s\x00" + kind + message(2, message(1, meta))


CASES = [
    Hostile("aliases of long text", "POST", MAPS, YAML, aliases),
    Hostile("aliases of long text, applied", "PATCH", f"{MAPS}/a", APPLY, aliases),
    Hostile("an alias bomb", "POST", MAPS, YAML, bomb),
    *(
        Hostile(f"a body {depth} deep", "POST", MAPS, JSON, partial(deep_config_map, depth))
        for depth in (129, 196, 500, 990, 100_000)
    ),
    Hostile("deep YAML", "POST", MAPS, YAML, lambda: b"[" * 100_000),
    Hostile("a deep apply", "PATCH", f"{MAPS}/a", APPLY, lambda: deep_config_map(196)),
    *(
        Hostile(f"a {kind[12:17]} patch {depth} deep", "PATCH", f"{MAPS}/a", kind,
                partial(deep, depth))
        for kind in (MERGE, STRATEGIC)
        for depth in (129, 500, 980, 100_000)
    ),
    Hostile("a JSON patch 900 deep", "PATCH", f"{MAPS}/a", JSON_PATCH,
            lambda: build_add_patch(deep(900))),
    Hostile("a map doubled 40 times", "PATCH", f"{MAPS}/a", JSON_PATCH,
            lambda: build_copy_patch(40), (400, 422)),
    Hostile("9,000 copies of 1 MB", "PATCH", f"{MAPS}/a", JSON_PATCH, long_copies, (422,)),
    Hostile("copies into each other", "PATCH", f"{MAPS}/a", JSON_PATCH,
            lambda: encode([{"op": "copy", "from": "/data", "path": "/data/a"}] * 9_000),
            (400, 422)),
    Hostile("a pattern that backtracks", "POST", TRAPS, JSON,
            lambda: trap("pattern", "a" * 41 + "!"), (422,)),
    Hostile("an expression in a rule that backtracks", "POST", TRAPS, JSON,
            lambda: trap("find", "a" * 41 + "!"), (422,)),
    Hostile("a rule that doubles a text", "POST", TRAPS, JSON,
            lambda: trap("double", "abcdefgh" * 100), (422,)),
    Hostile("a pattern of 100,000 classes", "POST", DEFINITIONS, JSON, classes, (422,)),
    Hostile("long strategic patches", "PATCH", f"{PODS}/large", STRATEGIC, build_ordered_patch,
            (200, 409, 422, TIMED_OUT), at_once=8),
    Hostile("applies by a second manager", "PATCH", f"{PODS}/large", APPLY,
            lambda: encode(pod("large", ENTRIES)), (200, 409, TIMED_OUT), at_once=4),
    Hostile("an apply of a large map", "PATCH", f"{MAPS}/a", APPLY,
            lambda: encode(config_map() | {"data": {f"k{n}": "" for n in range(60_000)}}),
            (200, 409, 413, TIMED_OUT), seconds=15.0),
    Hostile("an apply of very many values", "PATCH", f"{MAPS}/a", APPLY,
            lambda: encode(config_map(finalizers=[""] * 400_000))),
    Hostile("a wide role", "POST", ROLES, JSON, role, (403,)),
    Hostile("empty owners", "POST", MAPS, JSON, owners, (400, TIMED_OUT), at_once=16),
    Hostile("as many owners as are read", "POST", MAPS, JSON, lambda: owners(95_000), (422,),
            at_once=4),
    Hostile("many items of a wrong type", "POST", MAPS, JSON,
            lambda: encode(config_map(finalizers=[1] * 900_000)), at_once=4),
    Hostile("as many items of a wrong type as are read", "POST", MAPS, JSON,
            lambda: encode(config_map(finalizers=[1] * 250_000)), at_once=4),
    Hostile("many options of a wrong type", "DELETE", f"{MAPS}/a", JSON,
            lambda: encode({"dryRun": [1] * 900_000}), at_once=4),
    Hostile("many items that are null", "POST", MAPS, JSON,
            lambda: encode(config_map(finalizers=[None] * 250_000)), at_once=4),
    Hostile("long selectors", "GET", f"{MAPS}?labelSelector=" + "a," * 30_000 + "a", JSON,
            lambda: b"", (200, 431), at_once=4),
    Hostile("many controllers", "POST", MAPS, JSON, controllers, (422,), at_once=4),
    Hostile("empty items of protobuf", "POST", MAPS, PROTOBUF, empty_items),
    Hostile("a time far away", "POST", MAPS, PROTOBUF, far_away),
    Hostile("a directive that is no text", "PATCH", f"{MAPS}/a", STRATEGIC,
            lambda: b'{"$patch":{}}'),
    Hostile("a number of 4,000 digits", "POST", MAPS, YAML,
            lambda: b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: n}\nx: 0x" + b"f" * 4_000,
            (201, 400)),
]  # fmt: skip

# --- small or honest requests that are much work, sent again and again

KEYS = 40_000
FLOODED = (  # the objects that they change
    config_map(name="large") | {"data": {f"k{n}": "" for n in range(KEYS)}},
    config_map(name="small") | {"data": {"x": "AB"}},
    config_map(name="listed", finalizers=["a.example/b"]),
)


def inserts() -> bytes:
    finalizers = "/metadata/finalizers"
    first = {"op": "add", "path": finalizers, "value": ["a.example/b"] * 90_000}
    return encode([first, *[{"op": "add", "path": f"{finalizers}/0", "value": "c.d/e"}] * 9_900])


FLOODS = [
    Hostile("doubling copies", "PATCH", f"{MAPS}/small", JSON_PATCH,
            lambda: build_copy_patch(40), (422,)),
    Hostile("a small patch of a large object", "PATCH", f"{MAPS}/large", MERGE,
            lambda: encode({"data": {"k1": "z"}}), (200, 409)),
    Hostile("empty owners", "POST", MAPS, JSON, lambda: owners(95_000), (422,)),
    Hostile("inserts into a list", "PATCH", f"{MAPS}/listed", JSON_PATCH, inserts, (422,)),
]  # fmt: skip
