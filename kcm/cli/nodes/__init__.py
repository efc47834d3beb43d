"""The command `kcm nodes`, which simulates nodes and sends commands to running simulators."""
