"""Self-contained HTML pages: figures, tables and verdicts in one file."""
