"""Request bodies: decoding them, checking their fields, and warnings about them."""
