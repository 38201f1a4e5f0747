// Runs a program and comes back with its exit code; signals are passed on to it.
#ifndef HZ_TOOLS_LAUNCH_H
#define HZ_TOOLS_LAUNCH_H

// Runs `path` with argv and this process's environment and waits. Returns its exit code, 128+n
// where signal n ended it, or an HZ_EXIT_ code after a sentence where it could not be started.
//
// The program stays in this process's group, so the terminal's signals reach it directly; signals
// that a process sends to us are passed on. When the terminal stops the program, we stop too, and
// it continues when we do. Only for a process with one thread; the signal mask stays changed.
int hz_launch(char *path, char **argv);

#endif
