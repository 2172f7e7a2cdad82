"""Data sets, tasks, experiments, reports, benchmarks and the command line. The library never imports it."""
