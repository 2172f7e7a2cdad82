"""Payload ↔ bytes. Nothing here trusts a byte: sizes are checked before anything is allocated."""
