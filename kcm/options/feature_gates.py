"""The feature gates of Kubernetes (`--feature-gates`), and those that kcm acts on.

`feature_gates.txt` has all gates of 1.36: name, default, stage, and whether the default is locked.
What a gate guards is there if the gate is on by default, and otherwise it is not; kcm switches
nothing of this but what `DEFAULTS` lists.

Source: pkg/features/kube_features.go and
test/compatibility_lifecycle/reference/versioned_feature_list.yaml, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from kcm import errors
from kcm.apimachinery.suggestions import suggest

AUTHORIZE_CREATE_OF_STREAMS = "AuthorizePodWebsocketUpgradeCreatePermission"
DEFAULTS: Mapping[str, bool] = MappingProxyType({AUTHORIZE_CREATE_OF_STREAMS: True})
_VALUES = {"true": True, "false": False}


@dataclass(frozen=True)
class FeatureGate:
    """A gate of Kubernetes: its default, and whether it cannot be set."""

    default: bool
    locked: bool


@cache
def list_gates() -> Mapping[str, FeatureGate]:
    """Returns all gates of Kubernetes 1.36 by name."""
    text = resources.files(__package__).joinpath("feature_gates.txt").read_text("utf-8")
    rows = (line.split() for line in text.splitlines())
    return {
        name: FeatureGate(default == "on", bool(locked)) for name, default, _stage, *locked in rows
    }


def parse(text: str) -> Mapping[str, bool]:
    """Returns all gates as a flag like `Name=false,Other=true` sets them.

    Raises: ConfigurationError.
    """
    gates = dict(DEFAULTS)
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in gates:
            raise errors.ConfigurationError(f"--feature-gates: {_refuse(name)}")
        if value.lower() not in _VALUES:
            raise errors.ConfigurationError(
                f"--feature-gates: {name} must be true or false, not {value or 'nothing'}"
            )
        gates[name] = _VALUES[value.lower()]
    return gates


def _refuse(name: str) -> str:
    gate = list_gates().get(name)
    if gate is None:
        return f"unrecognized feature gate: {name}{suggest(name, list_gates())}"
    state = "on" if gate.default else "off"
    if gate.locked:
        return f"the feature gate {name} is locked: it is {state}"
    return (
        f"kcm does not act on the feature gate {name}, which is {state} by default; it acts on "
        + ", ".join(DEFAULTS)
    )
