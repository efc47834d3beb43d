"""What CRI leaves to the kubelet: files, name resolution, logs and control groups of containers."""
