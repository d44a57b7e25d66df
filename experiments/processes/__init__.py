"""Worker processes and programs: start them, end them, and measure a run in a process of its own."""
