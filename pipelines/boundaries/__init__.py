"""Where one topic ends and the next begins."""
