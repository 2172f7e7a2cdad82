"""Figures as plain data: which rows of a table make a line, which lines a panel, and how the axes run."""
