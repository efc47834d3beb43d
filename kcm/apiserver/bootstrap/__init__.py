"""What an API server sets up and keeps: the cluster's own objects, definitions, its Service."""
