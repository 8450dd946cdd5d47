"""Speed beside the peer a user would pick, in one run, as ratios. `make bench` runs all and writes RESULTS.md."""
