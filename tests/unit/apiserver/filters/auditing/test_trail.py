"""The content of audit events, and what they leave out."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from kcm import errors
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.filters.auditing.policy import Policy
from kcm.apiserver.filters.auditing.trail import AuditTrail, open_trail
from kcm.apiserver.http.bodies import protobuf
from kcm.apiserver.http.responses import Response, json_response
from kcm.apiserver.request import Request
from kcm.clock import RealClock

RECEIVED = datetime(2030, 1, 1, 3, 0, 0, 5, tzinfo=UTC)
JANE = User("jane", "17", ("dev",), (("scopes", ("a", "b")),))
POD = {"metadata": {"name": "web", "managedFields": [{"manager": "kubectl"}]}}
CREATE = Attributes("create", version="v1", resource="pods", namespace="a")


class ClockAt(RealClock):
    def now(self) -> datetime:
        return RECEIVED.replace(second=1)


def build_exchange(body: bytes = json.dumps(POD).encode(), **facts: Any) -> Exchange:
    headers = {
        b"user-agent": b"kubectl/v1.36" + b"x" * 2000,
        b"content-type": facts.pop("content_type", b"application/json; charset=utf-8"),
    }
    request = Request("POST", "/api/v1/namespaces/a/pods/\u00e9", b"dryRun=All", headers, body)
    scope = {"client": ("10.1.2.3", 4000)}
    exchange = Exchange(request, scope, receive, send, sender=JANE, user=JANE, asked=CREATE)
    return replace(exchange, **facts)


async def receive() -> Message:
    raise AssertionError("an event needs no further body")


async def send(message: Message) -> None:
    raise AssertionError("an event answers nothing")


def write_events(
    exchange: Exchange, response: Response | None, output: io.StringIO, **rule: object
) -> list[dict[str, Any]]:
    """Returns the events that are written about a request by a policy of one rule."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [{"level": "RequestResponse", **rule}],
    }
    trail = AuditTrail(Policy.model_validate(policy), output, ClockAt())
    trail.note(exchange, response, RECEIVED)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def write_event(
    exchange: Exchange, response: Response | None = None, **rule: object
) -> dict[str, Any]:
    (event,) = write_events(exchange, response, io.StringIO(), **rule)
    return event


def test_an_event_says_who_asked_for_what_when_and_with_which_result() -> None:
    event = write_event(build_exchange(), json_response({}, 201), level="Metadata")
    assert len(event.pop("auditID")) == 36
    assert event.pop("userAgent") == "kubectl/v1.36" + "x" * 1011
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/a/pods/%C3%A9?dryRun=All",
        "verb": "create",
        "user": {
            "username": "jane",
            "uid": "17",
            "groups": ["dev"],
            "extra": {"scopes": ["a", "b"]},
        },
        "sourceIPs": ["10.1.2.3"],
        "responseStatus": {"metadata": {}, "code": 201},
        "objectRef": {"resource": "pods", "namespace": "a", "apiVersion": "v1"},
        "requestReceivedTimestamp": "2030-01-01T03:00:00.000005Z",
        "stageTimestamp": "2030-01-01T03:00:01.000005Z",
    }


def test_an_impersonated_user_stands_beside_the_sender() -> None:
    event = write_event(build_exchange(user=User("anna")))
    assert event["user"]["username"] == "jane"
    assert event["impersonatedUser"] == {"username": "anna"}


def test_annotations_of_admission_are_told() -> None:
    exchange = build_exchange()
    exchange.remarks.annotations["pod-security.kubernetes.io/enforce-policy"] = "baseline:latest"
    assert write_event(exchange)["annotations"] == exchange.remarks.annotations


@pytest.mark.parametrize(
    ("level", "logged"),
    [
        ("Metadata", set()),
        ("Request", {"requestObject"}),
        ("RequestResponse", {"requestObject", "responseObject"}),
    ],
)
def test_the_level_says_which_objects_are_logged(level: str, logged: set[str]) -> None:
    event = write_event(build_exchange(), json_response(POD), level=level)
    assert event.keys() & {"requestObject", "responseObject"} == logged
    assert all(event[field] == POD for field in logged)


def test_managed_fields_are_left_out_if_the_policy_says_so() -> None:
    event = write_event(build_exchange(), json_response(POD), omitManagedFields=True)
    assert event["requestObject"] == {"metadata": {"name": "web"}}
    assert event["responseObject"] == {"metadata": {"name": "web"}}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"", b""), (b"{", b"application/json"), (b"k8s", protobuf.CONTENT_TYPE.encode())],
)
def test_a_body_without_an_object_has_an_event_without_it(body: bytes, content_type: bytes) -> None:
    event = write_event(build_exchange(body, content_type=content_type))
    assert "requestObject" not in event


def test_a_watch_has_an_event_without_an_object_at_its_end() -> None:
    event = write_event(build_exchange(b"", asked=replace(CREATE, verb="watch")), None)
    assert event["verb"] == "watch"
    assert event["responseStatus"] == {"metadata": {}, "code": 200}


def test_a_path_that_is_no_resource_is_logged_by_its_method() -> None:
    event = write_event(build_exchange(asked=None, sender=None, user=User("nobody")))
    assert (event["verb"], event["user"]) == ("post", {"username": "nobody"})
    assert event.keys().isdisjoint({"objectRef", "requestObject"})


@pytest.mark.parametrize("rule", [{"level": "None"}, {"omitStages": ["ResponseComplete"]}])
def test_what_the_policy_leaves_out_has_no_event(rule: dict[str, object]) -> None:
    assert write_events(build_exchange(), None, io.StringIO(), **rule) == []


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_a_log_that_cannot_be_written_to_fails_no_request() -> None:
    with capture_logs() as shown:
        write_events(build_exchange(), None, FullDisk())
    assert [line["error"] for line in shown] == ["[Errno 28] No space left on device"]


def test_there_is_no_trail_without_a_policy_or_a_log(tmp_path: Path) -> None:
    assert open_trail(None, "-", RealClock()) is None
    assert open_trail(tmp_path, "", RealClock()) is None
    with pytest.raises(errors.ConfigurationError, match="--audit-log-path"):
        open_trail(tmp_path / "policy", str(tmp_path), RealClock())
