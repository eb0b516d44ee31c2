"""One file per revision; a released file is never edited."""
