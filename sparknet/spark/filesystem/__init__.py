"""Files that executors read and write, and file systems that Spark reaches."""
