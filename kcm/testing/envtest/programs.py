"""The entries of the programs. Imports the standard library only, without site-packages.

The template is an exception: it runs in a child of `etcd`, which needs all of kcm.
"""

from __future__ import annotations

import os
import sys

from kcm.testing.envtest import etcd as etcd_program
from kcm.testing.envtest.etcd import ENVIRONMENT


def etcd() -> None:
    """Runs `etcd`."""
    if {"--help", "-h"} & set(sys.argv[1:]):
        sys.stdout.write(etcd_program.HELP)
        sys.exit(0)
    sys.exit(etcd_program.main(sys.argv[1:], _run_template))


def kube_apiserver() -> None:
    """Runs `kube-apiserver`."""
    from kcm.testing.envtest.kube_apiserver import main  # noqa: PLC0415 - as above

    sys.exit(main(sys.argv[1:]))


def _run_template(handover: etcd_program.Handover) -> int:
    import site  # noqa: PLC0415 - the interpreter was started without it

    os.environ.update(ENVIRONMENT)
    site.main()
    from kcm.testing.envtest.template import Template  # noqa: PLC0415 - needs site-packages

    return Template(handover).run()
