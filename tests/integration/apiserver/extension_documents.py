"""The documents of `extension_server`: discovery and OpenAPI of `fruits`."""

from __future__ import annotations

from typing import Any

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def resources() -> list[dict[str, Any]]:
    return [
        {
            "name": "fruits",
            "singularName": "fruit",
            "namespaced": True,
            "kind": "Fruit",
            "verbs": VERBS,
            "shortNames": ["fr"],
        },
        {
            "name": "fruits/status",
            "singularName": "",
            "namespaced": True,
            "kind": "Fruit",
            "verbs": ["get"],
        },
    ]


def _schema(group: str, version: str, meta: str) -> dict[str, Any]:
    kind = {"group": group, "version": version, "kind": "Fruit"}
    return {
        "description": "Fruit is something to eat.",
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": meta},
            "taste": {"description": "Taste of the fruit.", "type": "string"},
        },
        "x-kubernetes-group-version-kind": [kind],
    }


def openapi_v2(group: str, version: str) -> dict[str, Any]:
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    ref = {"$ref": "#/definitions/com.example.Fruit"}
    kind = {"group": group, "version": version, "kind": "Fruit"}
    get = {
        "operationId": "listFruits",
        "x-kubernetes-group-version-kind": kind,
        "x-kubernetes-action": "list",
        "parameters": [{"$ref": "#/parameters/limit-1NfNmdNH"}],
        "responses": {"200": {"description": "OK", "schema": ref}, "401": {"description": "No"}},
    }
    return {
        "swagger": "2.0",
        "info": {"title": "fruits", "version": "v0"},
        "parameters": {"limit-1NfNmdNH": {"in": "query", "name": "limit", "type": "integer"}},
        "paths": {
            f"/apis/{group}/{version}/namespaces/{{namespace}}/fruits": {"get": get},
            "/version/": {"get": {"responses": {}}},
        },
        "definitions": {
            "com.example.Fruit": _schema(group, version, f"#/definitions/{meta}"),
            meta: {"type": "object", "description": "Another ObjectMeta."},
            "com.example.Unused": {"type": "object"},
        },
    }


def openapi_v3(group: str, version: str) -> dict[str, Any]:
    kind = {"group": group, "version": version, "kind": "Fruit"}
    path = f"/apis/{group}/{version}/namespaces/{{namespace}}/fruits"
    get = {
        "x-kubernetes-group-version-kind": kind,
        "x-kubernetes-action": "list",
        "responses": {"200": {"description": "OK"}},
    }
    return {
        "openapi": "3.0.0",
        "info": {"title": "fruits", "version": "v0"},
        "paths": {path: {"get": get, "post": get}},
        "components": {
            "schemas": {
                "com.example.Fruit": _schema(group, version, "#/components/schemas/Meta"),
                "Meta": {"type": "object"},
            }
        },
    }
