"""Preview environments that clean up after themselves: a controller of your own.

A ReplicaSet with the annotation `example.com/expires-after: 2h30m` is deleted when
it is that old, its pods with it. Run it beside the others, from any folder:

    kcm up -- --controller-module examples/05-controller/expiry.py
"""

import re
from datetime import timedelta

from pydantic import Field

from kcm.api.apps_v1 import ReplicaSet
from kcm.sdk import Controller, Delete, DeleteOptions, Options, Plan, View, Watch, own_key

DURATION = re.compile(r"(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?")


class ExpiryOptions(Options):
    """Becomes `--expiry-annotation`, `KCM_EXPIRY_ANNOTATION` and a line of `--help`."""

    expiry_annotation: str = Field(
        default="example.com/expires-after",
        description="The annotation that says how long a ReplicaSet may live, e.g. 2h30m",
    )


class ExpiryController(Controller):
    """Deletes ReplicaSets whose time is over."""

    name = "expiry-controller"
    short_name = "expiry"
    options_type = ExpiryOptions

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(ReplicaSet, own_key),)

    def reconcile(self, key: str, view: View) -> Plan:
        rs = view.lister(ReplicaSet).find(key)
        if rs is None or rs.deleting:
            return Plan()
        text = rs.annotations.get(self.options.expiry_annotation)
        if text is None:
            return Plan()
        match = DURATION.fullmatch(text)
        if not text or match is None:
            return Plan().record(rs, "BadExpiry", f"not a duration: {text!r}", warning=True)
        lifetime = timedelta(**{unit: int(n) for unit, n in match.groupdict("0").items()})
        left = rs.metadata.creation_timestamp + lifetime - view.now
        if left > timedelta(0):
            return Plan(requeue_after=left.total_seconds())
        options = DeleteOptions(uid=rs.uid, propagation_policy="Background")
        return Plan().then(Delete(rs, options)).record(rs, "Expired", f"was to live for {text}")
