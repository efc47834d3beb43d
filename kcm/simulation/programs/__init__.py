"""What simulated containers do when their commands are small programs, such as `echo` or a short
script of a shell.

Guarantees: nothing is started and no file is read: a program has the environment of its container
and the contents of its volumes, as values. What is not understood is not guessed: such a container
does what simulated containers do without programs. Programs are bounded in length, steps, files and
output (`syntax.LONGEST`, `shell.MOST_STEPS`, `files.MOST_BYTES`, `process.MOST_OUTPUT`).
"""
