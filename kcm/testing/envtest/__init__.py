"""The programs that controller-runtime's envtest starts: `kube-apiserver` and `etcd`.

`programs` is what both begin with, and imports the standard library only, so that it starts at
once. See docs/testing-go.md and docs/designs/0063.
"""
