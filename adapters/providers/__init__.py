"""Providers at work: the caller of scripts, its check, and the providers that come with the package."""
