"""The filters that every request passes, a file for each; `kcm.apiserver.filters.chain` has them
in their order.
"""
