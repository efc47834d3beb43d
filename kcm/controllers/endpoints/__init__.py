"""The controllers of the addresses behind Services."""
