"""Revisions: which one is current, which are created, and which are deleted."""

from __future__ import annotations

import json
from typing import Any

from kcm.api import codec
from kcm.api.apps_v1 import ControllerRevision
from kcm.api.core_v1 import Volume
from kcm.api.scheme import BUILT_IN
from kcm.helpers.history import (
    HASH,
    new_revision,
    patch_of,
    record_revision,
    revisions_beyond_limit,
    sort_revisions,
    template_of,
)
from kcm.reconcile.plan import Create, Patch
from tests.set_builders import stateful_set, template

SET = stateful_set()
LABELS = {"app": "web"}
IMAGES = [template(LABELS, f"nginx:{n}") for n in range(4)]


def revisions(*numbers: int) -> list[ControllerRevision]:
    """Returns a revision for each template, with these numbers."""
    created = [new_revision(SET, IMAGES[i], n, f"h{i}", HASH) for i, n in enumerate(numbers)]
    return sort_revisions(created)


def free(name: str) -> bool:
    return False


def test_a_revision_keeps_its_template_as_a_patch_that_replaces() -> None:
    (revision,) = revisions(1)
    assert template_of(revision) == IMAGES[0]
    assert patch_of(IMAGES[0])["spec"]["template"]["$patch"] == "replace"
    assert revision.labels == {**LABELS, HASH: "h0"}


def test_its_data_has_the_bytes_of_upstreams() -> None:
    """The expected text is that of upstream's getPatch in 1.36, which encodes a map."""
    (revision,) = revisions(1)
    assert b'"data":' + (
        b'{"spec":{"template":{"$patch":"replace",'
        b'"metadata":{"labels":{"app":"web"}},'
        b'"spec":{"containers":[{"image":"nginx:0","name":"c","resources":{}}]}}}}'
    ) in codec.encode(revision)
    assert codec.decode(codec.encode(revision), BUILT_IN) == revision


def test_claims_of_ephemeral_volumes_have_metadata_even_if_it_is_empty() -> None:
    claim: dict[str, Any] = {"spec": {}}
    volume = Volume.model_validate(
        {"name": "v", "ephemeral": {"volumeClaimTemplate": claim}},
    )
    data = patch_of(template(LABELS, volumes=[volume]))
    (volumes,) = data["spec"]["template"]["spec"]["volumes"]
    assert volumes["ephemeral"]["volumeClaimTemplate"]["metadata"] == {}


def test_revisions_of_earlier_releases_still_count() -> None:
    """Their templates have null creation times. That must not cause a rollout."""
    known = revisions(1, 2)
    old = [revision.replace(data=_with_null_time(revision.data)) for revision in known]
    assert old[0].data != known[0].data
    outcome = record_revision(SET, IMAGES[1], old, 0, free)
    assert (outcome.revision, outcome.writes) == (old[1], [])
    assert template_of(old[0]) == template_of(known[0])


def _with_null_time(data: Any) -> Any:
    text = json.dumps(data)
    assert '"metadata": {' in text
    return json.loads(text.replace('"metadata": {', '"metadata": {"creationTimestamp": null, '))


def test_the_first_template_makes_the_first_revision() -> None:
    outcome = record_revision(SET, IMAGES[0], [], 0, free)
    assert (outcome.revision.revision, outcome.collisions) == (1, 0)
    assert [type(write) for write in outcome.writes] == [Create]


def test_the_template_of_the_last_revision_makes_none() -> None:
    known = revisions(1, 2)
    outcome = record_revision(SET, IMAGES[1], known, 0, free)
    assert (outcome.revision, outcome.writes) == (known[1], [])


def test_a_template_that_comes_back_gets_the_next_number() -> None:
    known = revisions(1, 2, 3)
    outcome = record_revision(SET, IMAGES[0], known, 0, free)
    assert (outcome.revision.name, outcome.revision.revision) == ("web-h0", 4)
    (write,) = outcome.writes
    assert isinstance(write, Patch)
    changed = write.change(known[0])
    assert isinstance(changed, ControllerRevision)
    assert changed.revision == 4


def test_names_that_are_taken_are_counted() -> None:
    first = record_revision(SET, IMAGES[0], [], 0, free).revision
    outcome = record_revision(SET, IMAGES[0], [], 0, lambda key: key == first.key)
    assert outcome.collisions == 1
    assert outcome.revision.name != first.name


def test_the_oldest_that_nobody_uses_go() -> None:
    known = revisions(1, 2, 3, 4)
    doomed = revisions_beyond_limit(known, lambda revision: revision.revision in (1, 4), 1)
    assert [revision.revision for revision in doomed] == [2]
    assert revisions_beyond_limit(known, lambda revision: False, 10) == []
