"""One set of page frame, styles, charts and escaping for every page that descend writes."""
