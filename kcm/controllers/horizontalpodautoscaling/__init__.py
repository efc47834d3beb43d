"""The HorizontalPodAutoscaler controller is in `controller`; `sync` builds the plan of one sync."""

from kcm.controllers.horizontalpodautoscaling.controller import HorizontalPodAutoscalerController

__all__ = ["HorizontalPodAutoscalerController"]
