"""The controllers of bootstrap tokens, by which nodes join."""
