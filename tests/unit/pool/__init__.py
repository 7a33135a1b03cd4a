"""Tests of the licence pool."""
