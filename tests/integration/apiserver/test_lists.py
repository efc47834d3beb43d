"""Lists, pages, selectors, tables and content negotiation."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.store.reader import decode_continue, encode_continue
from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


@pytest.fixture(scope="module")
def pods(api: Live) -> str:
    """Returns the path of ten pods, in a namespace of their own."""
    api.create("/api/v1/namespaces", {"metadata": {"name": "lists"}})
    path = "/api/v1/namespaces/lists/pods"
    for number in range(10):
        api.create(path, pod(f"p{number}", labels={"even": str(number % 2 == 0)}))
    return path


def names(body: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


def test_a_list_shows_what_was_just_written(api: Live, pods: str) -> None:
    for number in range(20):
        api.create(pods, pod(f"fresh{number}", labels={"fresh": "1"}))
        assert f"fresh{number}" in names(api.get(pods))
    api.client.delete(pods, params={"labelSelector": "fresh"})
    assert names(api.get(pods, labelSelector="fresh")) == []


def test_pages_follow_each_other_to_the_end(api: Live, pods: str) -> None:
    seen: list[str] = []
    page = api.get(pods, limit=4)
    assert page["metadata"]["remainingItemCount"] == 6
    version = page["metadata"]["resourceVersion"]
    while True:
        seen += names(page)
        assert page["metadata"]["resourceVersion"] == version
        token = page["metadata"].get("continue")
        if not token:
            break
        page = api.get(pods, limit=4, **{"continue": token})
    assert seen == [f"p{number}" for number in range(10)]


@pytest.fixture
def three(api: Live, request: pytest.FixtureRequest) -> str:
    """Returns the path of three pods, in a namespace of their own."""
    name = f"snap-{abs(hash(request.node.name)) % 10**8}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}/pods"
    for letter in "bdf":
        api.create(path, pod(letter))
    return path


def test_pages_show_the_moment_of_the_first(api: Live, three: str) -> None:
    first = api.get(three, limit=1)
    token = first["metadata"]["continue"]
    api.create(three, pod("c"))
    api.client.delete(f"{three}/f", params={"gracePeriodSeconds": 0})
    api.patch(f"{three}/d", {"metadata": {"labels": {"new": "1"}}})
    rest = api.get(three, **{"continue": token})
    assert names(rest) == ["d", "f"]
    assert "labels" not in rest["items"][0]["metadata"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert names(api.get(three)) == ["b", "c", "d"]


def test_an_exact_list_shows_an_earlier_moment(api: Live, three: str) -> None:
    version = api.get(three)["metadata"]["resourceVersion"]
    api.create(three, pod("a"))
    exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    stored = api.get(three, **exact)
    assert names(stored) == ["b", "d", "f"]
    assert stored["metadata"]["resourceVersion"] == version
    page = api.get(three, limit=2, **exact)
    assert page["metadata"]["remainingItemCount"] == 1
    assert names(api.get(three, **{"continue": page["metadata"]["continue"]})) == ["f"]


def test_a_token_that_is_too_old_comes_with_one_for_the_rest(api: Live, three: str) -> None:
    key = f"{three.split('/')[4]}/b"
    refused = api.client.get(three, params={"continue": encode_continue(key, 1), "limit": 1})
    body = refused.json()
    assert (refused.status_code, body["reason"]) == (410, "Expired")
    assert "continue parameter is too old" in body["message"]
    rest = api.get(three, limit=1, **{"continue": body["metadata"]["continue"]})
    assert names(rest) == ["d"]
    assert names(api.get(three, **{"continue": rest["metadata"]["continue"]})) == ["f"]


def test_a_token_is_good_for_five_minutes(api: Live, three: str) -> None:
    token = api.get(three, limit=1)["metadata"]["continue"]
    key, version, issued = decode_continue(token)
    for age, code in ((295, 200), (305, 410)):
        old = encode_continue(key, version, issued - age)
        response = api.client.get(three, params={"continue": old, "limit": 1})
        assert response.status_code == code, response.text
    rest = response.json()["metadata"]["continue"]
    assert names(api.get(three, **{"continue": rest})) == ["d", "f"]


@pytest.mark.parametrize(
    "params",
    [
        {"continue": "rubbish"},
        {"continue": encode_continue("x", 4 * 10**15)},
        {"continue": encode_continue("x", 1), "resourceVersion": "5"},
        {"continue": encode_continue("x", 1), "resourceVersionMatch": "Exact"},
    ],
)
def test_tokens_and_limits_that_make_no_sense_are_refused(
    api: Live, pods: str, params: dict[str, str]
) -> None:
    assert api.client.get(pods, params=params).status_code in {400, 422}


def test_a_limit_counts_what_the_selector_chooses(api: Live, pods: str) -> None:
    page = api.get(pods, limit=3, labelSelector="even=True")
    assert names(page) == ["p0", "p2", "p4"]
    assert "remainingItemCount" not in page["metadata"]
    rest = api.get(pods, labelSelector="even=True", **{"continue": page["metadata"]["continue"]})
    assert names(rest) == ["p6", "p8"]


def test_selectors_narrow_lists(api: Live, pods: str) -> None:
    assert len(names(api.get(pods, labelSelector="even=True"))) == 5
    assert names(api.get(pods, fieldSelector="metadata.name=p3")) == ["p3"]
    everywhere = api.get("/api/v1/pods", fieldSelector="metadata.namespace=lists")
    assert len(names(everywhere)) == 10
    assert names(api.get("/api/v1/namespaces/elsewhere/pods")) == []


def test_a_list_is_as_fresh_as_it_must_be(api: Live, pods: str) -> None:
    version = api.get(pods)["metadata"]["resourceVersion"]
    assert len(names(api.get(pods, resourceVersion="0"))) == 10
    later = api.get(pods, resourceVersion=version, resourceVersionMatch="NotOlderThan")
    assert int(later["metadata"]["resourceVersion"]) >= int(version)
    future = api.client.get(pods, params={"resourceVersion": str(int(version) + 1000)})
    assert future.status_code == 504
    cause = future.json()["details"]["causes"][0]
    assert cause["reason"] == "ResourceVersionTooLarge"
    old = {"resourceVersion": "1", "resourceVersionMatch": "Exact"}
    assert api.client.get(pods, params=old).status_code == 410


def test_tables_carry_metadata_the_object_or_nothing(api: Live, pods: str) -> None:
    def table(include: str) -> dict[str, Any]:
        body: dict[str, Any] = api.client.get(
            pods, headers=TABLE, params={"includeObject": include, "limit": 1}
        ).json()
        return body

    plain = table("")
    assert plain["kind"] == "Table"
    columns = {c["name"]: c for c in plain["columnDefinitions"]}
    assert [*columns][:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert columns["IP"]["priority"] == 1
    assert columns["Name"]["format"] == "name"
    assert plain["rows"][0]["cells"][:3] == ["p0", "0/1", "Pending"]
    assert plain["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table("Object")["rows"][0]["object"]["kind"] == "Pod"
    assert "object" not in table("None")["rows"][0]
    refused = api.client.get(pods, headers=TABLE, params={"includeObject": "Half"})
    assert refused.status_code == 400


def test_one_object_can_be_a_table_or_metadata_alone(api: Live, pods: str) -> None:
    table = api.client.get(f"{pods}/p1", headers=TABLE).json()
    assert [row["cells"][0] for row in table["rows"]] == ["p1"]
    accept = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    slim = api.client.get(f"{pods}/p1", headers=accept).json()
    assert (slim["kind"], slim["metadata"]["name"]) == ("PartialObjectMetadata", "p1")
    assert "spec" not in slim
    many = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    assert api.client.get(pods, headers=many).json()["kind"] == "PartialObjectMetadataList"


@pytest.mark.usefixtures("pods")
def test_counts_in_tables_are_numbers(api: Live) -> None:
    path = "/apis/apps/v1/namespaces/lists/replicasets"
    api.create(path, replica_set("web", 3))
    assert api.client.get(path, headers=TABLE).json()["rows"][0]["cells"][:4] == ["web", 3, 0, 0]


def test_large_answers_are_compressed_for_who_can_read_that(api: Live) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "large"}})
    path = "/api/v1/namespaces/large/pods"
    for number in range(3):
        api.create(path, pod(f"p{number}", annotations={"a": "x" * 60_000}))
    packed = api.client.get(path)
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.json()["items"]) == 3
    plain = api.client.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers


def test_a_head_request_has_no_body(api: Live, pods: str) -> None:
    assert api.client.head(pods).content == b""
