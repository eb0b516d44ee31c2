"""What cuts a whole answer into pieces, one file each."""
