"""kcm: the Kubernetes control plane's loops as a Celery application."""

__version__ = "0.2.0"
