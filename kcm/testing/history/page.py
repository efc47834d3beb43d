"""The timeline of a test as an HTML page: one file, without a network, that shows a lane for each
object.

Whatever comes from a control plane is data in the page, and its script shows it as text only. The
page's policy allows no script but this one, and no request.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any

from kcm.testing.history.diff import Absent, Change, show
from kcm.testing.history.reports import Report
from kcm.testing.history.writes import Mark, Write, describe

_PLACES = re.compile(r"@(SCRIPT_HASH|DATA|SCRIPT)@")
_MOST_CHANGES = 60  # of one write
_ESCAPED = {each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def render(report: Report, title: str, outcome: str, failure: str) -> str:
    """Returns the page about a test. `failure` is what the test said when it failed."""
    own = resources.files(__package__)
    script = own.joinpath("page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = {
        "title": title,
        "outcome": outcome,
        "failure": failure,
        "omitted": report.omitted,
        "writes": [_write(write, report.namespace) for write in report.history],
        "marks": [_mark(mark) for mark in report.history.marks],
    }
    page = own.joinpath("page.html").read_text("utf-8")
    parts = {"SCRIPT_HASH": f"sha256-{digest}", "DATA": _encode(data), "SCRIPT": script}
    return _PLACES.sub(lambda place: parts[place[1]], page)


def _encode(data: Any) -> str:
    """Returns JSON in which no markup can begin or end."""
    text = json.dumps(data, ensure_ascii=False, default=str)
    return "".join(_ESCAPED.get(each, each) for each in text)


def _write(write: Write, namespace: str | None) -> dict[str, Any]:
    changes = [] if write.told else list(write.changes)
    return {
        "rv": write.resource_version,
        "time": write.time.timestamp() * 1000,
        "clock": write.time.isoformat(" ", "milliseconds"),
        "event": write.event,
        "lane": _lane(write, namespace),
        "title": f"{write.verb} {write.target}",
        "namespace": write.namespace,
        "author": describe(write.author),
        "manager": write.manager,
        "told": write.told,
        "changes": [_change(change) for change in changes[:_MOST_CHANGES]],
        "more": max(len(changes) - _MOST_CHANGES, 0),
    }


def _lane(write: Write, namespace: str | None) -> str:
    """Returns the object in whose lane a write is: of an Event, the one that it is about.

    The namespace is named unless it is the one that the page is about.
    """
    kind, name, place = write.kind, write.name, write.namespace
    about = write.last.get("involvedObject") if write.resource == "events" else None
    if about:
        kind, name, place = (str(about.get(each) or "") for each in ("kind", "name", "namespace"))
    return f"{kind} {name}" if place in {"", namespace} else f"{kind} {place}/{name}"


def _change(change: Change) -> tuple[str, str | None, str | None]:
    old, new = (None if isinstance(v, Absent) else show(v) for v in (change.old, change.new))
    return change.path, old, new


def _mark(mark: Mark) -> dict[str, Any]:
    time = mark.time.timestamp() * 1000
    return {"text": mark.text, "kind": mark.kind, "time": time, "after": mark.after}
