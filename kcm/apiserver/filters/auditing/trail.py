"""Writes audit events: a line of JSON for each request that the policy is about.

An event is written when the request is answered, a watch's when it ends. Departure: its stage is
always ResponseComplete; there are none of the stages before, and none of Panic.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/audit.go, pkg/audit/request.go and
plugin/pkg/audit/log/backend.go, Kubernetes 1.36.
"""

from __future__ import annotations

import json
import sys
import uuid
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

import structlog

from kcm import errors
from kcm.apimachinery.meta_v1 import format_micro_time
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.filters.auditing.policy import Policy, Rule, Stage, load, reaches
from kcm.apiserver.http.bodies import protobuf
from kcm.apiserver.http.responses import Response
from kcm.clock import Clock

log = structlog.get_logger("kcm.apiserver")

Document = dict[str, Any]
_MAX_USER_AGENT = 1024  # characters


class AuditTrail:
    """The audit events of one server."""

    def __init__(self, policy: Policy, output: TextIO, clock: Clock) -> None:
        self._policy = policy
        self._output = output
        self._clock = clock

    def now(self) -> datetime:
        """Returns the time for `note`, when a request begins."""
        return self._clock.now()

    def note(self, exchange: Exchange, response: Response | None, received: datetime) -> None:
        """Writes the event of a request that was answered, if the policy wants it.

        `response` is None for a request that was answered on the way, such as a watch. If the event
        cannot be written, a warning is logged.
        """
        asked = exchange.asked or Attributes(
            exchange.request.method.lower(), path=exchange.request.path
        )
        user = exchange.sender or exchange.user
        rule = self._policy.find(asked, user)
        stage: Stage = "ResponseComplete"
        if rule is None or self._policy.omits(rule, stage):
            return
        event = self._describe(exchange, asked, user, rule, response)
        event |= {
            "stage": stage,
            "requestReceivedTimestamp": format_micro_time(received),
            "stageTimestamp": format_micro_time(self._clock.now()),
        }
        try:
            self._output.write(json.dumps(event, separators=(",", ":")) + "\n")
            self._output.flush()
        except OSError as error:  # such as a full disk; the request itself has been answered
            log.warning("An audit event could not be written", error=str(error))

    def _describe(
        self,
        exchange: Exchange,
        asked: Attributes,
        user: User,
        rule: Rule,
        response: Response | None,
    ) -> Document:
        request = exchange.request
        query = f"?{request.query_string.decode('latin-1')}" if request.query_string else ""
        event: Document = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": rule.level,
            "auditID": str(uuid.uuid4()),
            "requestURI": quote(request.path) + query,
            "verb": asked.verb,
            "user": _user(user),
            "sourceIPs": [exchange.scope["client"][0]] if exchange.scope.get("client") else [],
            "userAgent": request.header(b"user-agent")[:_MAX_USER_AGENT],
            "responseStatus": {"metadata": {}, "code": response.code if response else 200},
        }
        if exchange.user != user:
            event["impersonatedUser"] = _user(exchange.user)
        if exchange.remarks.annotations:
            event["annotations"] = dict(exchange.remarks.annotations)
        if asked.path:
            return event
        event["objectRef"] = _reference(asked)
        bare = self._policy.omits_managed_fields(rule)
        if reaches(rule, "Request"):
            event |= _object("requestObject", request.body, request.content_type, bare=bare)
        if reaches(rule, "RequestResponse") and response is not None:
            event |= _object("responseObject", response.body, response.content_type, bare=bare)
        return event


def _user(user: User) -> Document:
    fields = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra},
    }
    return {name: value for name, value in fields.items() if value}


def _reference(asked: Attributes) -> Document:
    fields = {
        "resource": asked.resource,
        "namespace": asked.namespace,
        "name": asked.name,
        "apiGroup": asked.group,
        "apiVersion": asked.version,
        "subresource": asked.subresource,
    }
    return {name: value for name, value in fields.items() if value}


def _object(field: str, body: bytes, content_type: str, *, bare: bool) -> Document:
    """Returns a field of an event with the object in a body, {} for a body without an object. With
    `bare` the object has no managed fields.
    """
    value: Any = None
    if content_type == protobuf.CONTENT_TYPE:
        with suppress(errors.KcmError):
            value = protobuf.decode(body)
    elif content_type.endswith("json"):
        with suppress(ValueError):
            value = json.loads(body)
    if value is None:
        return {}
    if bare and isinstance(value, dict) and isinstance(value.get("metadata"), dict):
        value["metadata"].pop("managedFields", None)
    return {field: value}


def open_trail(policy: Path | None, log: str, clock: Clock) -> AuditTrail | None:
    """Returns the trail that the flags ask for, None if there is no policy or no log, as upstream.

    `log` is a path, or `-` for standard output. Raises ConfigurationError.
    """
    if policy is None or not log:
        return None
    try:
        output = sys.stdout if log == "-" else Path(log).open("a", encoding="utf-8")  # noqa: SIM115 - it is open as long as the server runs
    except OSError as error:
        raise errors.ConfigurationError(f"--audit-log-path {log}: {error}") from error
    return AuditTrail(load(policy), output, clock)
