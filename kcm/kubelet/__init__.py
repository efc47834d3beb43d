"""The node agent: what is bound to a node runs on it, and what runs is reported."""

# Here, where the control plane learns it without the whole agent: beat asks for clean-ups.
HOUSEKEEPING_PERIOD = 2.0  # seconds
