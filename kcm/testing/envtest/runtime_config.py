"""Checks `--runtime-config` against the versions of APIs that kcm serves, which it does not change.

Source: staging/src/k8s.io/apiserver/pkg/server/resourceconfig/helpers.go and
pkg/controlplane/instance.go (DefaultAPIResourceConfigSource), Kubernetes 1.36.
"""

from __future__ import annotations

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.apiserver import computed_kinds

# What kcm serves: stable versions, and those of beta and alpha that are on by default.
_SWITCHES = {"api/all": None, "api/ga": "true", "api/beta": "false", "api/alpha": "false"}


def check_runtime_config(text: str) -> None:
    """Raises ConfigurationError for an entry that asks for anything but what is served."""
    served = {one.api_version for one in (*BUILT_IN.served(), *computed_kinds.LISTED)}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, equals, value = entry.partition("=")
        wanted = value.lower() if equals else "true"
        if wanted not in ("true", "false", ""):
            raise errors.ConfigurationError(f"--runtime-config: invalid value {entry}")
        if name in _SWITCHES:
            if wanted != _SWITCHES[name]:
                raise errors.ConfigurationError(
                    f"--runtime-config={entry} is not supported: kcm serves the versions that are "
                    "on by default"
                )
        elif (name.removeprefix("api/") in served) != (wanted != "false"):
            verb = "serves" if wanted == "false" else "does not serve"
            raise errors.ConfigurationError(
                f"--runtime-config={entry} is not supported: kcm {verb} {name}"
            )
