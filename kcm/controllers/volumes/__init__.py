"""The controllers of volumes: claims, their binding, and attachments."""
