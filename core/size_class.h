// One geometry of sizes for every line: 44 classes from 16 bytes to 64 KiB.
//
// 16-byte steps to 128 bytes, then four per doubling, so at most a fifth of a block is unused
// (docs/DECISIONS.md has the figures for eight). Every class is a multiple of 16; a block is
// aligned to the largest power of two that divides its class, because runs start at slab borders.
#ifndef HZ_CORE_SIZE_CLASS_H
#define HZ_CORE_SIZE_CLASS_H

#include "core/base.h"

enum {
  HZ_CLASS_COUNT = 44,
  HZ_CLASS_MAX_BYTES = 65536,
  HZ_CLASS_BY_16_MAX = 1024, // sizes up to here are looked up in steps of 16, above in steps of 256
};

struct hz_size_class {
  uint32_t bytes;      // of a block
  uint16_t slabs;      // of a run, 64 KiB each
  uint16_t blocks;     // in a run
  uint64_t reciprocal; // 2^40 / bytes, rounded up
};

extern HZ_HIDDEN const struct hz_size_class hz_size_classes[HZ_CLASS_COUNT];
extern HZ_HIDDEN const uint8_t hz_class_by_16[];
extern HZ_HIDDEN const uint8_t hz_class_by_256[];

// The smallest class that holds `bytes`. bytes: 0 to HZ_CLASS_MAX_BYTES.
HZ_FAST unsigned hz_class_of(size_t bytes) {
  if (hz_likely(bytes <= HZ_CLASS_BY_16_MAX)) return hz_class_by_16[(bytes + 15) >> 4];
  return hz_class_by_256[(bytes + 255) >> 8];
}

HZ_FAST size_t hz_class_bytes(unsigned class_id) {
  return hz_size_classes[class_id].bytes;
}

// The smallest class that holds `bytes` and whose blocks are all aligned to `align`; HZ_CLASS_COUNT
// if there is none. align: a power of two.
HZ_FAST unsigned hz_class_of_aligned(size_t align, size_t bytes) {
  if (bytes > HZ_CLASS_MAX_BYTES || align > HZ_CLASS_MAX_BYTES) return HZ_CLASS_COUNT;
  unsigned class_id = hz_class_of(bytes);
  while (class_id < HZ_CLASS_COUNT && (hz_class_bytes(class_id) & (align - 1)) != 0) class_id++;
  return class_id;
}

// Whether a block of the class still suits a size that it is resized to: it has room, and no more
// than half of it would be left over (or no smaller class could do).
HZ_FAST bool hz_class_fits(unsigned class_id, size_t bytes) {
  const size_t usable = hz_class_bytes(class_id);
  return bytes <= usable && (bytes >= usable / 2 || hz_class_of(bytes) == class_id);
}

// Which block of a run an offset (below 4 MiB) from its start falls into.
HZ_FAST uint32_t hz_class_index(unsigned class_id, size_t offset) {
  return (uint32_t)((offset * hz_size_classes[class_id].reciprocal) >> 40);
}

#endif
