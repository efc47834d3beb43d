"""kcm: the Kubernetes control plane's loops as a Celery application."""

__version__ = "0.2.0"
KUBERNETES_VERSION = "1.36.2"  # the version of Kubernetes that kcm follows
