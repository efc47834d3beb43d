"""The HorizontalPodAutoscaler controller: `controller` is its entry, and `sync` is one sync."""

from kcm.controllers.horizontalpodautoscaling.controller import HorizontalPodAutoscalerController

__all__ = ["HorizontalPodAutoscalerController"]
