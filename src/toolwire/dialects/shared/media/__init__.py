"""Images, files and audio: their types, limits and translation between dialects."""
