"""What several dialects share: assembly of streamed parts, errors, losses, media, instructions."""
