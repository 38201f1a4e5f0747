// The ELF reader: program headers for the loader's path and notes, section headers for symbols and
// needed libraries. `table_at` is the one place that turns an offset into a pointer.
#include "tools/elf_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// count elements of `element_bytes` at `offset`, or NULL where they do not lie inside the file or
// are not aligned for reading in place.
static const void *table_at(const struct hz_elf_file *file, uint64_t offset, uint64_t count,
                            size_t element_bytes, size_t align) {
  if (offset > file->size || count > (file->size - offset) / element_bytes) return NULL;
  return offset % align == 0 ? file->bytes + offset : NULL;
}

// A string of at most `bytes` bytes that ends inside them, or NULL.
static const char *text_at(const struct hz_elf_file *file, uint64_t offset, uint64_t bytes) {
  const char *text = table_at(file, offset, bytes, 1, 1);
  return text && memchr(text, '\0', bytes) ? text : NULL;
}

static bool is_go_note(const struct hz_elf_file *file, const Elf64_Phdr *header) {
  // Source: cmd/internal/buildid of the Go toolchain: name "Go", type 4 (build id).
  const Elf64_Nhdr *note = table_at(file, header->p_offset, header->p_filesz, 1, 4);
  if (!note || header->p_filesz < sizeof *note + 4) return false;
  return note->n_namesz == 4 && note->n_type == 4 && memcmp(note + 1, "Go\0", 4) == 0;
}

static bool read_program_headers(struct hz_elf_file *file, const Elf64_Ehdr *header) {
  const Elf64_Phdr *rows =
      table_at(file, header->e_phoff, header->e_phnum, sizeof *rows, alignof(Elf64_Phdr));
  if (!rows) return false;
  for (size_t i = 0; i < header->e_phnum; i++) {
    if (rows[i].p_type == PT_NOTE && is_go_note(file, &rows[i])) file->go = true;
    if (rows[i].p_type != PT_INTERP) continue;
    file->interpreter = text_at(file, rows[i].p_offset, rows[i].p_filesz);
    if (!file->interpreter) return false;
  }
  return true;
}

// The string table that a section links to. Both readers below need the same one.
static bool read_strings(struct hz_elf_file *file, const Elf64_Shdr *sections, size_t count,
                         size_t link) {
  if (link >= count || sections[link].sh_type != SHT_STRTAB || sections[link].sh_size == 0)
    return false;
  const char *strings = table_at(file, sections[link].sh_offset, sections[link].sh_size, 1, 1);
  if (!strings || strings[sections[link].sh_size - 1] != '\0') return false;
  file->strings = strings;
  file->string_bytes = sections[link].sh_size;
  return true;
}

// A file without section headers (stripped to the bone) is fine: it has no symbols to show.
static bool read_sections(struct hz_elf_file *file, const Elf64_Ehdr *header) {
  if (header->e_shoff == 0) return true;
  const Elf64_Shdr *rows =
      table_at(file, header->e_shoff, header->e_shnum, sizeof *rows, alignof(Elf64_Shdr));
  if (!rows) return false;
  for (size_t i = 0; i < header->e_shnum; i++) {
    const Elf64_Shdr *row = &rows[i];
    if (row->sh_type != SHT_DYNSYM && row->sh_type != SHT_DYNAMIC) continue;
    if (!read_strings(file, rows, header->e_shnum, row->sh_link)) return false;
    bool symbols = row->sh_type == SHT_DYNSYM;
    size_t element = symbols ? sizeof(Elf64_Sym) : sizeof(Elf64_Dyn);
    size_t count = row->sh_size / element;
    const void *table = table_at(file, row->sh_offset, count, element, alignof(Elf64_Sym));
    if (!table) return false;
    if (symbols) {
      file->symbols = table;
      file->symbol_count = count;
    } else {
      file->dynamic = table;
      file->dynamic_count = count;
    }
  }
  return true;
}

static enum hz_elf_state read_headers(struct hz_elf_file *file) {
  const Elf64_Ehdr *header = (const void *)file->bytes;
  // The identification, type and machine have the same place in both classes.
  if (file->size < SELFMAG || memcmp(file->bytes, ELFMAG, SELFMAG) != 0) return HZ_ELF_NONE;
  if (file->size < sizeof(Elf32_Ehdr)) return HZ_ELF_DAMAGED;
  file->bits = header->e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
  file->type = header->e_type;
  file->machine = header->e_machine;
  unsigned own_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  if (file->bits != 64 || header->e_ident[EI_DATA] != own_order) return HZ_ELF_OTHER;
  if (file->size < sizeof *header) return HZ_ELF_DAMAGED;
  bool whole = read_program_headers(file, header) && read_sections(file, header);
  return whole ? HZ_ELF_READ : HZ_ELF_DAMAGED;
}

enum hz_elf_state hz_elf_open(struct hz_elf_file *file, const char *path) {
  *file = (struct hz_elf_file){.bytes = NULL};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return HZ_ELF_NO_FILE;
  struct stat status;
  bool known = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  void *bytes = MAP_FAILED;
  if (known && status.st_size > 0)
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (!known || status.st_size == 0) return HZ_ELF_NONE;
  if (bytes == MAP_FAILED) return HZ_ELF_NO_FILE;
  file->bytes = bytes;
  file->size = (size_t)status.st_size;
  return read_headers(file);
}

void hz_elf_close(struct hz_elf_file *file) {
  if (file->bytes) munmap((void *)(uintptr_t)file->bytes, file->size);
  *file = (struct hz_elf_file){.bytes = NULL};
}

static bool has_symbol(const struct hz_elf_file *file, const char *name, bool defined) {
  for (size_t i = 0; i < file->symbol_count; i++) {
    const Elf64_Sym *symbol = &file->symbols[i];
    if ((symbol->st_shndx != SHN_UNDEF) != defined) continue;
    if (symbol->st_name >= file->string_bytes) continue;
    if (strcmp(file->strings + symbol->st_name, name) == 0) return true;
  }
  return false;
}

bool hz_elf_defines(const struct hz_elf_file *file, const char *symbol) {
  return has_symbol(file, symbol, true);
}

bool hz_elf_imports(const struct hz_elf_file *file, const char *symbol) {
  return has_symbol(file, symbol, false);
}

const char *hz_elf_needed(const struct hz_elf_file *file, size_t i) {
  for (size_t row = 0; row < file->dynamic_count; row++) {
    if (file->dynamic[row].d_tag == DT_NULL) break;
    if (file->dynamic[row].d_tag != DT_NEEDED || i-- != 0) continue;
    uint64_t name = file->dynamic[row].d_un.d_val;
    return name < file->string_bytes ? file->strings + name : "";
  }
  return NULL;
}

bool hz_elf_is_library(const struct hz_elf_file *file) {
  // Position independent executables are of type ET_DYN too; the linker marks them.
  for (size_t row = 0; row < file->dynamic_count && file->dynamic[row].d_tag != DT_NULL; row++)
    if (file->dynamic[row].d_tag == DT_FLAGS_1 && (file->dynamic[row].d_un.d_val & DF_1_PIE))
      return false;
  return file->type == ET_DYN;
}

const char *hz_elf_machine_name(unsigned machine) {
  static char number[24];
  switch (machine) {
  case EM_386:
    return "x86 (32 bits)";
  case EM_X86_64:
    return "x86-64";
  case EM_ARM:
    return "arm (32 bits)";
  case EM_AARCH64:
    return "arm64";
  case EM_RISCV:
    return "risc-v";
  case EM_PPC64:
    return "ppc64";
  case EM_S390:
    return "s390";
  }
  snprintf(number, sizeof number, "machine %u", machine);
  return number;
}

unsigned hz_elf_own_machine(void) {
  struct hz_elf_file self;
  unsigned machine = hz_elf_open(&self, "/proc/self/exe") == HZ_ELF_READ ? self.machine : EM_NONE;
  hz_elf_close(&self);
  return machine;
}
