"""The documentation site, made from the code, its records and the pages of docs/."""
