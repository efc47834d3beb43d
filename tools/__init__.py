"""Programs for those who work on kcm."""
