"""Measurements of a published function in plain torch, a question each; nothing of gradspec is imported here."""
