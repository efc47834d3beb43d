"""The container runtimes: both implement kcm.kubelet.cri.Runtime."""
