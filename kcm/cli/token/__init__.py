"""The command `kcm token`."""
