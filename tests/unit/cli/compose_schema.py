"""The part of the Compose specification that our file uses, strict: unknown keys fail.

Written after the specification's text (https://github.com/compose-spec/compose-spec,
05-services.md and 07-volumes.md).
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
DURATION: Schema = {"type": "string", "pattern": r"^(\d+(us|ms|s|m|h))+$"}
WORDS: Schema = {"type": "array", "items": TEXT, "minItems": 1}
UNIQUE_WORDS: Schema = {**WORDS, "uniqueItems": True}


def _closed(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _named(value: Schema) -> Schema:
    return {
        "type": "object",
        "patternProperties": {"^[a-zA-Z0-9._-]+$": value},
        "additionalProperties": False,
    }


HEALTHCHECK = _closed(
    {
        "test": {
            "type": "array",
            "items": TEXT,
            "minItems": 2,
            "prefixItems": [{"enum": ["CMD", "CMD-SHELL"]}],
        },
        "interval": DURATION,
        "timeout": DURATION,
        "start_period": DURATION,
        "retries": {"type": "integer", "minimum": 1},
    },
    ("test",),
)

CONDITION = _closed(
    {
        "condition": {
            "enum": ["service_started", "service_healthy", "service_completed_successfully"]
        }
    },
    ("condition",),
)

ENVIRONMENT: Schema = {
    "type": "object",
    "patternProperties": {"^[A-Z][A-Z0-9_]*$": {"type": ["string", "number", "boolean", "null"]}},
    "additionalProperties": False,
}

SERVICE = _closed(
    {
        "image": TEXT,
        "build": TEXT,
        "user": TEXT,
        "init": {"type": "boolean"},
        "read_only": {"type": "boolean"},
        "restart": {"type": "string", "pattern": r"^(no|always|on-failure(:\d+)?|unless-stopped)$"},
        "entrypoint": WORDS,
        "command": WORDS,
        "environment": ENVIRONMENT,
        "volumes": UNIQUE_WORDS,
        "tmpfs": UNIQUE_WORDS,
        "ports": UNIQUE_WORDS,
        "cap_drop": UNIQUE_WORDS,
        "security_opt": UNIQUE_WORDS,
        "stop_grace_period": DURATION,
        "depends_on": _named(CONDITION),
        "healthcheck": HEALTHCHECK,
    },
    ("image", "healthcheck"),
)

COMPOSE: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]*$"},
        "services": _named(SERVICE),
        "volumes": _named({"type": "null"}),
    },
    "patternProperties": {"^x-": {}},
    "required": ["services"],
    "additionalProperties": False,
}
