"""The feature gates of Kubernetes that kcm acts on (`--feature-gates`).

Source: pkg/features/kube_features.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kcm import errors

AUTHORIZE_CREATE_OF_STREAMS = "AuthorizePodWebsocketUpgradeCreatePermission"
DEFAULTS: Mapping[str, bool] = MappingProxyType({AUTHORIZE_CREATE_OF_STREAMS: True})
_VALUES = {"true": True, "false": False}


def parse(text: str) -> Mapping[str, bool]:
    """Returns all gates as a flag like `Name=false,Other=true` sets them.

    Raises: ConfigurationError.
    """
    gates = dict(DEFAULTS)
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in gates:
            raise errors.ConfigurationError(
                f"--feature-gates: kcm does not act on a feature gate {name}; it acts on "
                + ", ".join(gates)
            )
        if value.lower() not in _VALUES:
            raise errors.ConfigurationError(
                f"--feature-gates: {name} must be true or false, not {value or 'nothing'}"
            )
        gates[name] = _VALUES[value.lower()]
    return gates
