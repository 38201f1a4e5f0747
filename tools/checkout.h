// Where the sources of this project are, for commands that run programs and scripts of theirs.
#ifndef HZ_TOOLS_CHECKOUT_H
#define HZ_TOOLS_CHECKOUT_H

// Finds the checkout: from the current folder upwards, else from this executable upwards. folder:
// PATH_MAX bytes. Returns HZ_EXIT_OK, or HZ_EXIT_NO_FILE after a sentence.
int hz_checkout_find(char *folder);

// Runs bench/NAME.sh with the arguments behind argv[0], with the library that this command would
// preload; with --help, prints its first comment instead. Returns its exit code, or one of
// enum hz_exit after a sentence.
int hz_checkout_run_script(const char *name, char **argv);

#endif
