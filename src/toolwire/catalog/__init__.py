"""Which back ends and models exist: routing of model names, and discovery without configuration."""
