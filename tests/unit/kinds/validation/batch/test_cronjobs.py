"""CronJobs."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.kinds.validation import validate_create
from kcm.testing import builders
from tests.samples import BODIES, with_spec
from tests.unit.kinds.validation.outcomes import texts, validate_changed, validate_new_spec

CRON_JOBS = "cronjobs.batch"
IN_SCHEDULE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"


def template(**spec: Any) -> dict[str, Any]:
    job_template = BODIES[CRON_JOBS]["spec"]["jobTemplate"]
    return {"jobTemplate": {"spec": {**job_template["spec"], **spec}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"timeZone": "Europe/Berlin", "schedule": "@daily"}, []),
        ({"schedule": ""}, ["spec.schedule: Required value"]),
        ({"schedule": "* *"},
         ['spec.schedule: Invalid value: "* *": expected exactly 5 fields, found 2: [* *]']),
        ({"schedule": "TZ=UTC * * * * *"},
         [f'spec.schedule: Invalid value: "TZ=UTC * * * * *": {IN_SCHEDULE}']),
        ({"timeZone": ""},
         ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string']),
        ({"timeZone": "Moon/Sea"},
         ['spec.timeZone: Invalid value: "Moon/Sea": unknown time zone Moon/Sea']),
        ({"timeZone": "../etc/passwd"},
         ['spec.timeZone: Invalid value: "../etc/passwd": unknown time zone ../etc/passwd']),
        ({"timeZone": "Local"},
         ['spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as '
          "defined in https://www.iana.org/time-zones"]),
        ({"concurrencyPolicy": "Maybe"},
         ['spec.concurrencyPolicy: Unsupported value: "Maybe": '
          'supported values: "Allow", "Forbid", "Replace"']),
        ({"startingDeadlineSeconds": -1},
         ["spec.startingDeadlineSeconds: Invalid value: -1: "
          "must be greater than or equal to 0"]),
        ({"failedJobsHistoryLimit": -1},
         ["spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"]),
        (template(parallelism=-1),
         ["spec.jobTemplate.spec.parallelism: Invalid value: -1: "
          "must be greater than or equal to 0"]),
        (template(manualSelector=True),
         ["spec.jobTemplate.spec.manualSelector: Unsupported value: true: "
          'supported values: "nil", "false"']),
        (template(selector={}),
         ["spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be "
          "auto-generated"]),
    ],
)  # fmt: skip
def test_the_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(CRON_JOBS, **spec) == expected


def test_a_name_leaves_room_for_the_time() -> None:
    assert validate_create(builders.cron_job("a" * 52)) == []
    (fault,) = texts(validate_create(builders.cron_job("a" * 53)))
    assert fault.endswith("must be no more than 52 characters")
    long = builders.cron_job("a" * 53)
    assert validate_changed(long, long) == []


def test_a_zone_in_a_schedule_may_stay_but_not_beside_another() -> None:
    old = with_spec(CRON_JOBS, schedule="TZ=UTC 0 3 * * *")
    assert validate_changed(old, old) == []
    new = with_spec(CRON_JOBS, schedule="TZ=UTC 0 3 * * *", timeZone="Asia/Tokyo")
    (fault,) = validate_changed(new, old)
    assert fault.endswith("cannot use both timeZone field and TZ or CRON_TZ in schedule")


def test_a_zone_that_is_unknown_now_may_stay() -> None:
    old = with_spec(CRON_JOBS, timeZone="Moon/Sea")
    assert validate_changed(old, old) == []
