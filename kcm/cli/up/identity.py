"""The keys and certificates of `kcm up`, in its state folder.

`sa.key` signs service account tokens, `apiserver.crt` is the API server's certificate, which pods
and kubeconfigs trust, `ca.crt` is the authority that signs client certificates, and
`front-proxy-ca.crt` the one by which other API servers know this one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kcm.apiserver import credentials
from kcm.apiserver.auth.token_options import KEY_FILE
from kcm.apiserver.bootstrap.kubernetes_service import list_names
from kcm.cli.up.plan import UpOptions
from kcm.options.flags import env_name
from kcm.settings import Settings

API_HOST = "127.0.0.1"  # where the API server listens


def with_identity(options: UpOptions, settings: Settings) -> UpOptions:
    """Returns the options with the files, which are generated if they are missing.

    Files that flags of the manager name take precedence. The API server also trusts the
    certificates of the authorities that the options name. Without an API server there are no files.
    Raises ConfigurationError.
    """
    if not options.api_port:
        return options
    folder, node = settings.state_dir, options.real_node
    in_cluster = list_names(settings.service_cluster_ip_range)
    hosts = (API_HOST, *options.access.hosts, *in_cluster)
    needed = credentials.ensure_manager_files(folder, hosts)
    files = {env_name(flag): str(path) for flag, path in needed.items()}
    key, authority = folder / KEY_FILE, credentials.load_authority(folder)
    trusted = [authority.certificate, *filter(None, [options.access.client_ca_file])]
    given = {name: value for name, value in options.manager.items() if value or name not in files}
    return replace(
        options,
        manager={**files, **given},
        access=replace(
            options.access,
            client_ca_file=credentials.write_client_authorities(folder, *trusted),
            token_key_file=key,
            kubelet_client=credentials.kubelet_client(folder, authority),
            kubelet_authority=authority.certificate,
            front_proxy=credentials.front_proxy(folder),
        ),
        real_node=node and replace(node, api_flags=_node_flags(key, options)),
    )


def _node_flags(key: Path, options: UpOptions) -> tuple[str, ...]:
    """Returns the kubelet's flags by which pods get tokens and find the API server.

    Containers have a network of their own, so they find it only by a name of this machine.
    """
    has_containers = options.real_node is not None and bool(options.real_node.endpoint)
    host = next(iter(options.access.hosts), API_HOST) if has_containers else API_HOST
    return (
        f"--service-account-signing-key-file={key}",
        f"--pod-api-server={host}:{options.api_port}",
    )
