// What a subcommand is, and the exit codes that all of them share.
#ifndef HZ_TOOLS_COMMAND_H
#define HZ_TOOLS_COMMAND_H

#include "core/base.h"

// As sysexits.h names them where it has a name; 126, 127 and 128+n as shells do.
enum hz_exit {
  HZ_EXIT_OK = 0,
  HZ_EXIT_FOUND = 1,        // doctor found something wrong; a self-check or a measured run failed
  HZ_EXIT_USAGE = 2,        // the command line itself
  HZ_EXIT_DATA = 65,        // a file that was named is not what it should be
  HZ_EXIT_NO_FILE = 66,     // a file that was named is missing or cannot be read
  HZ_EXIT_NO_LIBRARY = 69,  // the library to preload is missing
  HZ_EXIT_SYSTEM = 71,      // the system refused a process or memory
  HZ_EXIT_CONFIG = 78,      // a profile, option or configuration file is wrong
  HZ_EXIT_CANNOT_RUN = 126, // the program was found and cannot be executed
  HZ_EXIT_NOT_FOUND = 127,  // there is no such program
  HZ_EXIT_SIGNAL = 128,     // + the number of the signal that ended the program
};

struct hz_command {
  const char *name;
  const char *summary; // one phrase for the list in --help; NULL: not listed
  // argv[0] is "hakozuna NAME", for messages. Returns an exit code.
  int (*run)(int argc, char **argv);
};

int hz_cmd_run(int argc, char **argv);
int hz_cmd_profiles(int argc, char **argv);
int hz_cmd_config(int argc, char **argv);
int hz_cmd_doctor(int argc, char **argv);
int hz_cmd_compare(int argc, char **argv);
int hz_cmd_bench(int argc, char **argv);
int hz_cmd_self_check(int argc, char **argv);

// The command of that name; NULL, after a sentence that names the nearest one, where there is none.
// `parent`: what the commands belong to, for the sentence ("hakozuna", "hakozuna config").
const struct hz_command *hz_command_find(const struct hz_command *commands, size_t count,
                                         const char *parent, const char *name);

// Parses `parent`'s own options (--help, --version), then runs the command that argv names. The
// help text ends with the list of commands and the exit codes.
int hz_command_dispatch(const struct hz_command *commands, size_t count, const char *parent,
                        const char *doc, int argc, char **argv);

// The last paragraph of every --help.
#define HZ_EXIT_CODES_DOC                                                                          \
  "Exit codes: 0 success; 1 doctor found something wrong, or a measured run failed; "              \
  "2 wrong usage; 65 a file with wrong data; 66 no such file; "                                    \
  "69 the library to preload is missing; 71 the system refused a process; "                        \
  "78 wrong profile, option or configuration; 126 the program cannot be executed; "                \
  "127 no such program; 128+n the program was ended by signal n; "                                 \
  "otherwise the code of the program that was run."

#endif
