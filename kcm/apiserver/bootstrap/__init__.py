"""What an API server creates and keeps: default objects, custom kinds, the Service `kubernetes`."""
