"""Chat importers, one file a format; `registry` finds them by themselves."""
