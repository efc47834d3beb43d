from __future__ import annotations

import json

from kcm.api import codec, events_v1, scheme
from kcm.api.scheme import BUILT_IN
from kcm.kinds import validation
from kcm.kinds.printing.columns import columns_of, convert_for_columns
from kcm.testing.builders import START

CORE = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "Started",
    "message": "it runs",
    "source": {"component": "kubelet"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "count": 2,
    "type": "Normal",
    "reportingComponent": "kubelet",
    "reportingInstance": "n1",
}


def newer() -> scheme.Resource:
    return BUILT_IN.by_gvk("events.k8s.io/v1", "Event")


def test_the_newer_group_is_a_version_of_core_events() -> None:
    assert newer().name == "events"
    assert newer() not in BUILT_IN.resources()
    assert newer() in BUILT_IN.served()
    assert BUILT_IN.lookup("events").api_version == "v1"
    assert BUILT_IN.lookup("events.events.k8s.io") is newer()


def test_fields_have_their_newer_names_and_come_back_under_the_old_ones() -> None:
    raw = json.dumps(CORE).encode()
    event = codec.decode_stored(raw, newer())
    assert isinstance(event, events_v1.Event)
    assert (event.note, event.regarding.name, event.deprecated_count) == ("it runs", "p", 2)
    assert event.reporting_controller == "kubelet"
    assert json.loads(codec.encode_stored(event, newer())) == CORE


def test_new_events_need_a_time() -> None:
    event = codec.decode_stored(json.dumps(CORE).encode(), newer())
    assert "eventTime: Required value" in [str(f) for f in validation.validate_create(event)]


def test_they_are_printed_like_core_events() -> None:
    event = codec.decode_stored(json.dumps(CORE).encode(), newer())
    columns = columns_of(newer())
    cells = {column.title: column.text(convert_for_columns(event), START) for column in columns}
    assert (cells["Object"], cells["Message"]) == ("pod/p", "it runs")
