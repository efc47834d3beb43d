"""ValidatingAdmissionPolicies: which apply to a request, and what they decide.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy, Kubernetes 1.33.
"""
