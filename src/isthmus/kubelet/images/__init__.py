"""Images of pods: pull policy, credentials, backoff, and garbage collection of the cache."""
