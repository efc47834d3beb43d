"""Files and folders that containers could have changed, handled without being led elsewhere."""
