from __future__ import annotations

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.objects.selection import ObjectSelection, Page, check_options
from kcm.apiserver.request_info import parse
from kcm.testing.builders import pod

_NOT_OLDER = {"resourceVersionMatch": "NotOlderThan"}
_INITIAL = {"sendInitialEvents": "true"}
_NEEDS_INITIAL = (
    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
    "sendInitialEvents is provided"
)
_NEEDS_NOT_OLDER = (
    "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
    "NotOlderThan"
)
_WITH_CONTINUE = (
    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"
)
_AT_ZERO = (
    'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for '
    'resourceVersion "0"'
)


# After upstream's TestValidateListOptions.
@pytest.mark.parametrize(
    ("query", "watch", "faults"),
    [
        ({}, False, []),
        ({"resourceVersion": "1", "resourceVersionMatch": "Exact"}, False, []),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, False, [_AT_ZERO]),
        ({"resourceVersion": "0", **_NOT_OLDER}, False, []),
        (
            _NOT_OLDER,
            False,
            [
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
                "resourceVersion is provided"
            ],
        ),
        (
            {"resourceVersion": "0", "resourceVersionMatch": "foo"},
            False,
            [
                'resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", '
                '"NotOlderThan", ""'
            ],
        ),
        (
            _INITIAL,
            False,
            ["sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"],
        ),
        ({}, True, []),
        ({**_INITIAL, **_NOT_OLDER, "allowWatchBookmarks": "true"}, True, []),
        ({"sendInitialEvents": "false", **_NOT_OLDER}, True, []),
        (_NOT_OLDER, True, [_NEEDS_INITIAL]),
        (_INITIAL, True, [_NEEDS_NOT_OLDER]),
        (
            {**_INITIAL, "resourceVersionMatch": "Exact"},
            True,
            [
                _NEEDS_NOT_OLDER,
                'resourceVersionMatch: Unsupported value: "Exact": supported values: '
                '"NotOlderThan"',
            ],
        ),
        ({**_INITIAL, "resourceVersionMatch": ""}, True, [_NEEDS_NOT_OLDER]),
        ({**_INITIAL, **_NOT_OLDER, "continue": "123"}, True, [_WITH_CONTINUE]),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    query: dict[str, str], watch: bool, faults: list[str]
) -> None:
    if not faults:
        check_options(query, watch=watch)
        return
    with pytest.raises(errors.Invalid) as refused:
        check_options(query, watch=watch)
    assert [str(cause) for cause in refused.value.causes] == faults
    assert refused.value.message.startswith('ListOptions.meta.k8s.io "" is invalid: ')


def test_labels_and_fields_select_together() -> None:
    def selects(**query: str) -> bool:
        info = parse("/api/v1/namespaces/default/pods", BUILT_IN)
        return ObjectSelection.of(info, query).matches(entry)

    obj = pod("a", labels={"app": "web"})
    entry = Entry(Pod.resource, obj.key, codec.encode(obj), 1, obj)
    assert selects()
    assert selects(labelSelector="app=web", fieldSelector="metadata.name=a")
    assert not selects(labelSelector="app=db")
    assert not selects(labelSelector="app=web", fieldSelector="metadata.name=b")
    assert not selects(labelSelector="app=db", fieldSelector="metadata.name=a")


@pytest.mark.parametrize(
    ("text", "limit"), [("", 0), ("0", 0), ("7", 7), ("-1", 0), ("-99999999999999999999", 0)]
)
def test_a_list_has_no_more_objects_than_a_positive_limit(text: str, limit: int) -> None:
    assert Page.of({"limit": text}).limit == limit


@pytest.mark.parametrize("text", ["x", "-", "--1", "1.5", "9223372036854775808"])
def test_a_limit_is_a_whole_number(text: str) -> None:
    with pytest.raises(errors.BadRequest, match="limit"):
        Page.of({"limit": text})
