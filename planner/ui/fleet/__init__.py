"""What a controller decided last, and before: from its records, or as it says itself."""
