"""The controllers of certificates: requests for them, and bundles of those who sign."""
