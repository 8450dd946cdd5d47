"""Out of a run: files that other programs open, and what is in such files. A format has a file.

The folder is a plural, so that `descend.export` stays what it is: the verb, a plain function.
"""
