// Reading the loaded objects: see dispatch/objects.h.
#include "dispatch/objects.h"

enum { VERSION_HIDDEN = 0x8000 }; // in DT_VERSYM: not the default version of its name

// ---- From the loader's list to an hz_object------------------------------------------------------

static bool same(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) a++, b++;
  return *a == *b;
}

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

// The dynamic section of the object that this file was linked into; a static program has none.
extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak));

bool hz_objects_visit(bool (*visit)(const struct hz_object *object, void *context), void *context) {
  const struct link_map *first = _r_debug.r_map;
  for (const struct link_map *map = first; map != NULL; map = map->l_next) {
    struct hz_object object = {
        .path = map->l_name != NULL ? map->l_name : "",
        .is_executable = map == first,
        .is_ours = map->l_ld == _DYNAMIC,
        .base = map->l_addr,
    };
    if (map->l_ld != NULL) read_dynamic(&object, map->l_ld);
    if (object.symbols == NULL || object.strings == NULL) continue;
    if (visit(&object, context)) return true;
  }
  return false;
}

// ---- Definitions: by hash table -----------------------------------------------------------------

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
  if (!same(object->strings + symbol->st_name, name)) return;
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
  if (object->gnu_hash != NULL) look_up_gnu(object, name, &best);
  else if (object->sysv_hash != NULL) look_up_sysv(object, name, &best);
  return best.symbol != NULL ? (void *)(object->base + best.symbol->st_value) : NULL;
}

// ---- Imports: by relocation ---------------------------------------------------------------------

// The hash tables leave undefined symbols out, and the length of the symbol table is written
// nowhere, but a reference that matters has a relocation.
static const char *import_of(const struct hz_object *object, const ElfW(Rela) * relocation,
                             const char *const *names, size_t count) {
  const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
  if (symbol->st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL) return NULL;
  for (size_t i = 0; i < count; i++)
    if (same(object->strings + symbol->st_name, names[i])) return names[i];
  return NULL;
}

const char *hz_object_imports(const struct hz_object *object, const char *const *names,
                              size_t count) {
  for (unsigned table = 0; table < 2; table++) {
    const ElfW(Rela) *relocation = object->relocations[table];
    for (size_t i = 0; relocation != NULL && i < object->relocation_count[table]; i++) {
      if (ELF64_R_SYM(relocation[i].r_info) == 0) continue; // relative: by far the most
      const char *name = import_of(object, &relocation[i], names, count);
      if (name != NULL) return name;
    }
  }
  return NULL;
}

// ---- The next definition ------------------------------------------------------------------------

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

// The loader holds its lock while it calls back; one call is enough to walk its list in peace.
struct locked {
  const char *name;
  void *found;
};

static int find_next_locked(struct dl_phdr_info *info, size_t bytes, void *context) {
  (void)info, (void)bytes;
  struct locked *locked = context;
  locked->found = hz_next_definition(locked->name);
  return 1;
}

void *hz_next_definition_locked(const char *name) {
  struct locked locked = {.name = name};
  dl_iterate_phdr(find_next_locked, &locked);
  return locked.found;
}
