"""What the kubelet reports of its pods."""
