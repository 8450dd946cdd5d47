"""Training claims, proven by training: `make prove` runs each recipe as a user would and records what came out."""
