// Gives a folder that has only headers so far an archive to link.
