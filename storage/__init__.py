"""Where memories live: records, ids, filters, and the ports that every backend implements."""
