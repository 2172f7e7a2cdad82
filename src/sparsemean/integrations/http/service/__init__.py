"""The service: connections → who asks → batches of payloads → rounds, and what is told of them.

``process`` is where it begins; it needs the extra ``serve``.
"""
