"""Interrupting calls of a server at a chosen place: the parts of ``soak/interrupts.py``."""
