"""HorizontalPodAutoscalers: as many replicas as the metrics ask for."""

from kcm.controllers.horizontalpodautoscaling.controller import HorizontalPodAutoscalerController

__all__ = ["HorizontalPodAutoscalerController"]
