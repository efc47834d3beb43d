"""The page about a test."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest

from kcm.testing.history.page import render
from kcm.testing.history.reports import Report
from kcm.testing.history.watched import file_name
from kcm.testing.history.writes import History, Mark
from tests.unit.testing.history.written import START, written

HOSTILE = "</script><script>alert(1)</script><!-- @DATA@ @SCRIPT@ & \u2028"


def data_of(page: str) -> dict[str, Any]:
    """Returns the data in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_what_a_stranger_wrote_is_data_and_nothing_else() -> None:
    write = written(1, "ADDED", name=HOSTILE, data={HOSTILE: HOSTILE})
    history = History([write], [Mark(HOSTILE, "note", START, 0)])
    page = render(Report(history, 0), HOSTILE, "failed", HOSTILE)
    assert page.count("<script") == 2
    assert page.count("</script") == 2
    assert "alert(1)</" not in page
    data = data_of(page)
    assert (data["title"], data["failure"]) == (HOSTILE, HOSTILE)
    assert "</script><script>alert(1)</script>" in str(data["writes"])


def test_the_policy_allows_the_script_of_the_page_only() -> None:
    page = render(Report(History([]), 0), "t", "failed", "")
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", page)


def test_the_values_of_a_secret_are_not_in_the_page() -> None:
    write = written(1, kind="Secret", data={"p": "czNjcjN0"}, old={"data": {"p": "b2xk"}})
    page = render(Report(History([write]), 0), "t", "failed", "")
    assert "(hidden)" in page
    assert "czNjcjN0" not in page
    assert "b2xk" not in page


@pytest.mark.parametrize(
    ("namespace", "lanes"),
    [("n", ["Pod p", "ConfigMap a", "Pod m/p"]), (None, ["Pod n/p", "ConfigMap n/a", "Pod m/p"])],
)
def test_an_event_is_in_the_lane_of_its_object(namespace: str | None, lanes: list[str]) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "n"}
    event = written(1, "ADDED", resource="events", kind="Event", involvedObject=about)
    others = [written(2), written(3, resource="pods", kind="Pod", name="p", namespace="m")]
    data = data_of(render(Report(History([event, *others]), 0, namespace), "t", "failed", ""))
    assert [write["lane"] for write in data["writes"]] == lanes


def test_each_test_has_a_file_of_its_own() -> None:
    names = [file_name(f"tests/test_a.py::test_x[{one}]") for one in ("/", "..", "", "x" * 500)]
    assert len(set(names)) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,140}\.html", name) for name in names)
