"""From the payloads of a round to the mean of what was not expected, and how good it is."""
