"""The what-if app: pages for people who own capacity."""
