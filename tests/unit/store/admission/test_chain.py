"""Tests the order in which plugins see a write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kcm import errors
from kcm.api.admissionregistration_v1 import CREATE, DELETE
from kcm.api.core_v1 import ConfigMap
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.store.admission.chain import AdmissionChain
from kcm.store.admission.plugin import Plugin, Reinvocation, Write, forbid

CREATED = Write(CREATE, ConfigMap.resource, ConfigMap(metadata=ObjectMeta(name="a")))


class Recorder(Plugin):
    """Adds its name to the steps, and marks the object."""

    def __init__(self, name: str, steps: list[str], *, again: bool = False) -> None:
        self.mark = name
        self._steps = steps
        self._again = again

    def admit(self, write: Write) -> Write:
        self._steps.append(f"admit {self.mark}")
        assert write.new is not None
        marked = write.new.with_metadata(labels={**write.new.labels, self.mark: ""})
        again = {self.mark: Reinvocation(changed=True)}
        reinvocations = again if self._again else write.reinvocations
        return replace(write, new=marked, reinvocations=reinvocations)

    def validate(self, write: Write) -> None:
        assert write.new is not None
        self._steps.append(f"validate {self.mark} {sorted(write.new.labels)}")


class Checking(Recorder):
    """Only refuses, and only creations."""

    admit = Plugin.admit

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return operation == CREATE

    def validate(self, write: Write) -> None:
        assert write.new is not None
        raise forbid(write.new, "no")


def test_all_change_it_then_it_is_completed_then_all_check_it() -> None:
    steps: list[str] = []
    chain = AdmissionChain([Recorder("x", steps), Recorder("y", steps)])

    def complete(write: Write) -> Write:
        steps.append("complete")
        assert write.new is not None
        return write.with_new(write.new.with_metadata(labels={"z": ""}))

    done = chain.run(CREATED, complete)
    assert steps == ["admit x", "admit y", "complete", "validate x ['z']", "validate y ['z']"]
    assert done.new is not None
    assert done.new.labels == {"z": ""}


def test_after_a_change_by_a_webhook_all_see_it_once_more() -> None:
    steps: list[str] = []
    chain = AdmissionChain([Recorder("x", steps), Recorder("hook", steps, again=True)])
    chain.run(CREATED)
    assert steps[:4] == ["admit x", "admit hook"] * 2
    assert len(steps) == 6


def test_a_plugin_sees_what_it_handles() -> None:
    chain = AdmissionChain([Checking("x", [])])
    gone = Write(DELETE, ConfigMap.resource, None, CREATED.new)
    assert chain.run(gone) is gone
    with pytest.raises(errors.Forbidden, match='configmaps "a" is forbidden: no'):
        chain.run(CREATED)
