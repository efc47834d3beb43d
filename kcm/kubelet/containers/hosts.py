"""The hosts file of a pod: its own addresses and names, and its hostAliases.

Source: ensureHostsFile in pkg/kubelet/kubelet_pods.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kcm.api.core_v1 import Pod

NODE_HOSTS = Path("/etc/hosts")
_HEADER = "# Kubernetes-managed hosts file.\n"
_NODE_HEADER = "# Kubernetes-managed hosts file (host network).\n"
_LOCAL = (
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n"
)


def build_hosts(pod: Pod, ips: Sequence[str], hostname: str, domain: str) -> str:
    """Returns the hosts file of a pod with these addresses and this name.

    In the node's network it begins with the node's own. Raises OSError if that is unreadable.
    """
    if pod.spec.host_network:
        text = _NODE_HEADER + NODE_HOSTS.read_text("utf-8", "replace")
    else:
        names = f"{hostname}.{domain}\t{hostname}" if domain else hostname
        text = _HEADER + _LOCAL + "".join(f"{ip}\t{names}\n" for ip in ips)
    aliases = pod.spec.host_aliases or ()
    if not aliases:
        return text
    lines = [f"{alias.ip}\t" + "\t".join(alias.hostnames or ()) for alias in aliases]
    return text + "\n# Entries added by HostAliases.\n" + "".join(f"{line}\n" for line in lines)
