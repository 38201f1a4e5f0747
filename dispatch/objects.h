// The ELF objects that are loaded into this process, as the loader has them in memory.
//
// dlsym allocates and takes locks that must not be taken inside the first malloc; this walks the
// loader's public list (_r_debug) and reads dynamic sections, and nothing else. It calls no
// function of libc: a sanitizer that is just starting has replaced those with ones that do not work
// yet. Order is load order, which for objects loaded at start is also the order in which the loader
// looks a name up. Symbol versions are not compared: the default version of a name is preferred.
#ifndef HZ_DISPATCH_OBJECTS_H
#define HZ_DISPATCH_OBJECTS_H

#include <elf.h>
#include <link.h>

#include "core/base.h"

struct hz_object {
  const char *path; // "" is the executable
  bool is_executable;
  bool is_ours; // holds this library's code: libhakozuna.so, or a program that links it
  uintptr_t base;
  const ElfW(Sym) * symbols;
  const char *strings;
  const uint32_t *gnu_hash; // NULL: not there
  const uint32_t *sysv_hash;
  const ElfW(Half) * versions;       // NULL: not there
  const ElfW(Rela) * relocations[2]; // data, then procedure linkage
  size_t relocation_count[2];
};

// Calls visit for each loaded object until it returns true. True: it did. For the start of a
// process, when no other thread loads or unloads; the path stays valid for objects loaded by then.
bool hz_objects_visit(bool (*visit)(const struct hz_object *object, void *context), void *context);

// The address of the object's own definition of a function or variable; NULL: it defines none.
// An indirect function (STT_GNU_IFUNC) counts as none: its address is not in the symbol.
void *hz_object_definition(const struct hz_object *object, const char *name);

// The first of the names that the object cannot do without and takes from elsewhere, or NULL. Weak
// references, which a program makes to ask "is that allocator here?", do not count. Walks all
// relocations.
const char *hz_object_imports(const struct hz_object *object, const char *const *names,
                              size_t count);

// The definition that the program would have without this library: the first one in the objects
// after ours, else in those before. NULL: nobody defines it. For the start.
void *hz_next_definition(const char *name);

// The same at any later time and from any thread: takes the loader's lock, and uses libc for it.
void *hz_next_definition_locked(const char *name);

#endif
