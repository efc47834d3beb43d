"""The container runtimes, which implement `kcm.kubelet.cri.Runtime`."""
