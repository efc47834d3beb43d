"""Request bodies: decoding, checks of their fields, and warnings about them."""
