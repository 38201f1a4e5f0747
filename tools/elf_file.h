// Reads what an ELF file says of itself: class, machine, interpreter, needed libraries, symbols.
//
// The file may be anything, also cut short or hostile: every offset is checked against its size.
// Only 64-bit files in this machine's byte order are read beyond their header: nothing else can be
// preloaded into or be preloaded.
#ifndef HZ_TOOLS_ELF_FILE_H
#define HZ_TOOLS_ELF_FILE_H

#include <elf.h>

#include "core/base.h"

enum hz_elf_state {
  HZ_ELF_READ,    // all fields below are valid
  HZ_ELF_OTHER,   // an ELF file of another class or byte order: bits, machine and type are valid
  HZ_ELF_NONE,    // no ELF file
  HZ_ELF_DAMAGED, // an ELF file whose tables do not lie inside it
  HZ_ELF_NO_FILE, // cannot be opened or read; errno says why
};

struct hz_elf_file {
  const uint8_t *bytes; // the mapped file
  size_t size;
  unsigned bits;            // 32 or 64
  unsigned machine, type;   // EM_..., ET_...
  const char *interpreter;  // the dynamic loader's path; NULL: statically linked, or a library
  bool go;                  // built by the Go compiler
  const Elf64_Sym *symbols; // of the dynamic symbol table; count 0: none, or no section headers
  size_t symbol_count;
  const Elf64_Dyn *dynamic;
  size_t dynamic_count;
  const char *strings; // of both; ends in a NUL byte
  size_t string_bytes;
};

// Maps and reads `path`. hz_elf_close is due after every state.
enum hz_elf_state hz_elf_open(struct hz_elf_file *file, const char *path);
void hz_elf_close(struct hz_elf_file *file);

// Whether the dynamic symbol table defines the name, or asks other objects for it.
bool hz_elf_defines(const struct hz_elf_file *file, const char *symbol);
bool hz_elf_imports(const struct hz_elf_file *file, const char *symbol);

// The i-th needed library, "libc.so.6"; NULL after the last.
const char *hz_elf_needed(const struct hz_elf_file *file, size_t i);

// A shared object that is no executable: what LD_PRELOAD takes.
bool hz_elf_is_library(const struct hz_elf_file *file);

// "x86-64", "arm64", ... or "machine 243".
const char *hz_elf_machine_name(unsigned machine);

// The machine that this program was compiled for.
unsigned hz_elf_own_machine(void);

#endif
