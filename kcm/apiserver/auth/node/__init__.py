"""What kubelets may do: the Node authorizer, and the admission plugin NodeRestriction."""
