"""What makes a tool call trustworthy, the same for every back end."""
