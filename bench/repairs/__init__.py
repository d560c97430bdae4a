"""How many damaged calls come back as they were: real schemas, many damages, and a count of what came back wrong."""
