"""The desired pods of the node, and the mirror pods of its static pods."""
