"""Former names of commands: each file runs the command of today under the old name."""
