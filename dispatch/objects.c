// Reading the loaded objects: see dispatch/objects.h.
#include "dispatch/objects.h"

#include <string.h>

enum { VERSION_HIDDEN = 0x8000 }; // in DT_VERSYM: not the default version of its name

// ---- From program headers to an hz_object --------------------------------------------------------

// The loader turns the addresses of most dynamic sections into absolute ones when it maps them; the
// kernel's vDSO and read-only ones keep offsets. An offset is always below the base.
static const void *absolute(const struct hz_object *object, ElfW(Addr) value) {
  return (const void *)(value < object->base ? object->base + value : value);
}

static void read_dynamic(struct hz_object *object, const ElfW(Dyn) * entry) {
  for (; entry->d_tag != DT_NULL; entry++) {
    const void *at = absolute(object, entry->d_un.d_ptr);
    const size_t count = entry->d_un.d_val / sizeof(ElfW(Rela));
    switch (entry->d_tag) {
    case DT_SYMTAB:
      object->symbols = at;
      break;
    case DT_STRTAB:
      object->strings = at;
      break;
    case DT_GNU_HASH:
      object->gnu_hash = at;
      break;
    case DT_HASH:
      object->sysv_hash = at;
      break;
    case DT_VERSYM:
      object->versions = at;
      break;
    case DT_RELA:
      object->relocations[0] = at;
      break;
    case DT_RELASZ:
      object->relocation_count[0] = count;
      break;
    case DT_JMPREL:
      object->relocations[1] = at;
      break;
    case DT_PLTRELSZ:
      object->relocation_count[1] = count;
      break;
    }
  }
}

// Any address of ours tells which object we are.
static bool holds_this_file(const struct dl_phdr_info *info) {
  static const char here;
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_LOAD && (uintptr_t)&here - start < header->p_memsz) return true;
  }
  return false;
}

struct walk {
  bool (*visit)(const struct hz_object *object, void *context);
  void *context;
  bool first;
};

static int visit_one(struct dl_phdr_info *info, size_t bytes, void *context) {
  (void)bytes;
  struct walk *walk = context;
  struct hz_object object = {
      .path = info->dlpi_name != NULL ? info->dlpi_name : "",
      .is_executable = walk->first,
      .is_ours = holds_this_file(info),
      .base = info->dlpi_addr,
  };
  walk->first = false;
  for (size_t i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      read_dynamic(&object, (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
  if (object.symbols == NULL || object.strings == NULL) return 0;
  return walk->visit(&object, walk->context);
}

bool hz_objects_visit(bool (*visit)(const struct hz_object *object, void *context), void *context) {
  struct walk walk = {.visit = visit, .context = context, .first = true};
  return dl_iterate_phdr(visit_one, &walk) != 0;
}

// ---- Definitions: by hash table ------------------------------------------------------------------

// A lookup's best answer so far: the default version of a name beats the others.
struct match {
  const ElfW(Sym) * symbol;
  bool is_default;
};

static void consider(const struct hz_object *object, const char *name, uint32_t index,
                     struct match *best) {
  const ElfW(Sym) *symbol = &object->symbols[index];
  const unsigned type = ELF64_ST_TYPE(symbol->st_info);
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0) return;
  if (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE) return;
  if (strcmp(object->strings + symbol->st_name, name) != 0) return;
  const bool hidden = object->versions != NULL && (object->versions[index] & VERSION_HIDDEN) != 0;
  if (best->symbol == NULL || (!hidden && !best->is_default))
    *best = (struct match){symbol, !hidden};
}

// DT_GNU_HASH: a header of four words, a Bloom filter, buckets, and chains whose values have the
// low bit set at their end.
static void look_up_gnu(const struct hz_object *object, const char *name, struct match *best) {
  uint32_t hash = 5381;
  for (const char *c = name; *c != '\0'; c++) hash = hash * 33 + (unsigned char)*c;

  const uint32_t *table = object->gnu_hash;
  const uint32_t buckets = table[0], first = table[1], filter_words = table[2], shift = table[3];
  const ElfW(Addr) *filter = (const void *)(table + 4);
  const uint32_t *bucket = (const void *)(filter + filter_words);
  const uint32_t *chain = bucket + buckets;
  enum { WORD_BITS = 8 * sizeof(ElfW(Addr)) };

  const ElfW(Addr) word = filter[hash / WORD_BITS % filter_words];
  if ((word >> hash % WORD_BITS & word >> (hash >> shift) % WORD_BITS & 1) == 0) return;
  uint32_t index = buckets != 0 ? bucket[hash % buckets] : 0;
  if (index < first) return;
  for (;; index++) {
    if ((chain[index - first] | 1) == (hash | 1)) consider(object, name, index, best);
    if ((chain[index - first] & 1) != 0) return;
  }
}

// DT_HASH: two counts, buckets, and chains that end with index 0.
static void look_up_sysv(const struct hz_object *object, const char *name, struct match *best) {
  uint32_t hash = 0;
  for (const char *c = name; *c != '\0'; c++) {
    hash = (hash << 4) + (unsigned char)*c;
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  const uint32_t buckets = object->sysv_hash[0];
  const uint32_t *bucket = object->sysv_hash + 2, *chain = bucket + buckets;
  if (buckets == 0) return;
  for (uint32_t i = bucket[hash % buckets]; i != 0; i = chain[i]) consider(object, name, i, best);
}

void *hz_object_definition(const struct hz_object *object, const char *name) {
  struct match best = {NULL, false};
  if (object->gnu_hash != NULL)
    look_up_gnu(object, name, &best);
  else if (object->sysv_hash != NULL)
    look_up_sysv(object, name, &best);
  return best.symbol != NULL ? (void *)(object->base + best.symbol->st_value) : NULL;
}

// ---- Imports: by relocation ----------------------------------------------------------------------

// The hash tables leave undefined symbols out, and the length of the symbol table is written
// nowhere, but a reference that matters has a relocation.
static bool is_import_of(const struct hz_object *object, const ElfW(Rela) * relocation,
                         const char *const *names, size_t count) {
  const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
  if (symbol->st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL) return false;
  const char *name = object->strings + symbol->st_name;
  for (size_t i = 0; i < count; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

bool hz_object_imports(const struct hz_object *object, const char *const *names, size_t count) {
  for (unsigned table = 0; table < 2; table++) {
    const ElfW(Rela) *relocation = object->relocations[table];
    if (relocation == NULL) continue;
    for (size_t i = 0; i < object->relocation_count[table]; i++)
      if (ELF64_R_SYM(relocation[i].r_info) != 0 &&
          is_import_of(object, &relocation[i], names, count))
        return true;
  }
  return false;
}

// ---- The next definition -------------------------------------------------------------------------

struct next {
  const char *name;
  bool past_ours;
  void *after, *before;
};

static bool find_next(const struct hz_object *object, void *context) {
  struct next *next = context;
  if (object->is_ours) {
    next->past_ours = true;
    return false;
  }
  void **found = next->past_ours ? &next->after : &next->before;
  if (*found == NULL) *found = hz_object_definition(object, next->name);
  return next->after != NULL;
}

void *hz_next_definition(const char *name) {
  struct next next = {.name = name};
  hz_objects_visit(find_next, &next);
  return next.after != NULL ? next.after : next.before;
}
