from __future__ import annotations

from typing import ClassVar

import pytest
from pydantic import Field

from kcm import errors
from kcm.options.flags import Flag, all_flags
from kcm.options.reference import reference, sections
from kcm.reconcile.contract import Controller, Options

Types = tuple[type[Controller], ...]


def test_flag_variable_and_field_of_upstreams_options() -> None:
    from kcm.controllers.podgc import PodGCController
    from kcm.controllers.replicaset import ReplicaSetController

    flags_by_name = {flag.name: flag for flag in all_flags((PodGCController, ReplicaSetController))}
    syncs = flags_by_name["concurrent-replicaset-syncs"]
    assert syncs.env == "KCM_CONCURRENT_REPLICASET_SYNCS"
    assert syncs.path == ("replicaSetController", "concurrentRSSyncs")
    threshold = flags_by_name["terminated-pod-gc-threshold"]
    assert threshold.path == ("podGCController", "terminatedPodGCThreshold")


def test_two_options_cannot_share_a_flag(samples: Types) -> None:
    class Clash(Options):
        secure_port: int = Field(default=1, description="Clashes")

    class ClashController(Controller):
        name = "clash-controller"
        short_name = "clash"
        options_type: ClassVar[type[Options]] = Clash

    with pytest.raises(errors.ConfigurationError, match="--secure-port is a flag of secure serv"):
        all_flags((*samples, ClashController))


def test_no_option_takes_a_settings_variable() -> None:
    class Clash(Options):
        redis_url: str = Field(default="", description="Clashes")

    class ClashController(Controller):
        name = "clash-controller"
        short_name = "clash"
        options_type: ClassVar[type[Options]] = Clash

    with pytest.raises(errors.ConfigurationError, match="--redis-url is a flag of settings"):
        all_flags((ClashController,))


def test_every_flag_reads_what_it_prints(samples: Types) -> None:
    for flag in all_flags(samples):
        assert flag.parse(flag.format(flag.default)) == flag.default


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "TRUE", "True"])
def test_switches_read_as_in_go(text: str, samples: Types) -> None:
    flag = _flag("leader-elect", samples)
    assert flag.parse(text) is True


def test_every_row_of_the_reference_says_what_it_means(samples: Types) -> None:
    titles = [section.title for section in reference(samples)]
    assert titles == [
        "settings",
        "generic",
        "leader election",
        "secure serving",
        "cloud provider",
        "widget-controller",
    ]
    for section in reference(samples):
        for row in section.rows:
            assert row.meaning
            assert row.variable.startswith("KCM_")


def test_a_controllers_section_has_its_options(samples: Types) -> None:
    widget = next(section for section in sections(samples) if section.title == "widget-controller")
    grace = next(row for row in widget.rows if row.flag == "--widget-grace-period")
    assert (grace.kind, grace.default) == ("duration", "40s")
    assert grace.field == "widgetController.widgetGracePeriod"


def _flag(name: str, types: Types) -> Flag:
    return next(flag for flag in all_flags(types) if flag.name == name)
