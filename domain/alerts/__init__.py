"""Alerts: what somebody should know of without having asked, and who was told of it."""
