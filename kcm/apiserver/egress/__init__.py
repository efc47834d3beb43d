"""What the API server asks of other servers, and the requests that it passes on to them.

The word is upstream's, whose egress selector decides how these requests leave. They are sent by
`kcm.http`.
"""
