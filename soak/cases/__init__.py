"""What several soaks share."""
