// The command `hakozuna`: the table of its subcommands. Each has a file of its own, cmd_NAME.c.
#include "tools/command.h"

static const struct hz_command commands[] = {
    {"run", "run a program under an allocator", hz_cmd_run},
    {"profiles", "list the profiles, or show one", hz_cmd_profiles},
    {"config", "show, check or document the configuration", hz_cmd_config},
    {"doctor", "find out what keeps the library from serving a program", hz_cmd_doctor},
    {"compare", "run a command under several allocators and say what differs", hz_cmd_compare},
    {"bench", "measure the allocators in the lanes of a checkout", hz_cmd_bench},
    {"self-check", NULL, hz_cmd_self_check}, // what doctor runs under the library
};

int main(int argc, char **argv) {
  return hz_command_dispatch(commands, hz_count_of(commands), "hakozuna",
                             "Chooses and tunes the memory allocator of a program as it starts.",
                             argc, argv);
}
