"""Videos: frames read and written one by one, and MOTChallenge's files of tracks."""
