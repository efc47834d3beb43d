"""Validation of PersistentVolumes, of classes, and of what drivers say of themselves."""
