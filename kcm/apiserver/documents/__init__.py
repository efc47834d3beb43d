"""Discovery and OpenAPI: the documents that describe the API itself."""
