"""The controllers of service accounts and their tokens."""
