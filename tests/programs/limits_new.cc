// C++ under a limit: containers grow until std::bad_alloc, which is caught; then all goes on.
#include <list>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/support/check.h"

namespace {

int handler_calls;

void count_and_give_up() {
  if (++handler_calls % 2 == 0) throw std::bad_alloc();
}

// Grows until memory ends. Returns how many items there were.
template <class Container, class Grow> size_t grow_to_the_end(Grow grow) {
  Container items;
  try {
    for (;;) grow(items);
  } catch (const std::bad_alloc &) {
    return items.size();
  }
}

size_t strings() {
  return grow_to_the_end<std::list<std::string>>(
      [](auto &items) { items.push_back(std::string(1000 + items.size() % 5000, 'x')); });
}

size_t arrays() {
  return grow_to_the_end<std::vector<std::unique_ptr<char[]>>>(
      [](auto &items) { items.push_back(std::make_unique<char[]>(100000)); });
}

size_t one_vector() {
  return grow_to_the_end<std::vector<long>>(
      [](auto &items) { items.push_back(static_cast<long>(items.size())); });
}

void fill_repeatedly(const char *what, size_t (*fill)()) {
  size_t first = fill();
  for (int round = 0; round < 3; round++) {
    size_t again = fill();
    CHECK(again >= first / 10 * 9, "%s: %zu items at first, %zu later", what, first, again);
  }
  CHECK(first > 0, "%s: not one item", what);
  say("%s: %zu items\n", what, first);
}

} // namespace

int main() {
  fill_repeatedly("strings", strings);
  fill_repeatedly("arrays", arrays);
  fill_repeatedly("one vector", one_vector);
  std::set_new_handler(count_and_give_up);
  strings();
  CHECK(handler_calls == 2, "the new handler was called %d times, expected 2", handler_calls);
  void *refused = ::operator new(opaque_size(static_cast<size_t>(1) << 40), std::nothrow);
  CHECK(refused == nullptr, "nothrow new of 1 TiB gave %p", refused);
  say("ok\n");
  return 0;
}
