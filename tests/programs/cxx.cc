// operator new and delete in all their forms, as C++17 specifies them: the new handler's loop,
// bad_alloc, nothrow, alignment, sizes that do not match, and containers shared by threads.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/support/check.h"
#include "tests/support/pattern.h"

// clang declares the sized forms only on request (-fsized-deallocation).
void operator delete(void *, std::size_t) noexcept;
void operator delete[](void *, std::size_t) noexcept;
void operator delete(void *, std::size_t, std::align_val_t) noexcept;
void operator delete[](void *, std::size_t, std::align_val_t) noexcept;

namespace {

const size_t huge = opaque_size(PTRDIFF_MAX);
const std::align_val_t aligned{256};

void *usable(void *p, size_t bytes, size_t align, const char *form) {
  CHECK(p != nullptr, "%s of %zu bytes gave NULL", form, bytes);
  p = opaque(p);
  CHECK(reinterpret_cast<uintptr_t>(p) % align == 0,
        "%s of %zu bytes gave %p, expected alignment %zu", form, bytes, p, align);
  pattern_fill(p, bytes, 5);
  CHECK(pattern_intact(p, bytes, bytes, 5) == bytes, "%s of %zu bytes is not writable", form,
        bytes);
  return p;
}

// Each of the eight forms of new, released by each form of delete that may take its block.
void all_forms(size_t n) {
  const auto &nothrow = std::nothrow;
  ::operator delete(usable(::operator new(n), n, 16, "new"));
  ::operator delete(usable(::operator new(n), n, 16, "new"), n);
  ::operator delete(usable(::operator new(n, nothrow), n, 16, "new nothrow"), nothrow);
  ::operator delete[](usable(::operator new[](n), n, 16, "new[]"));
  ::operator delete[](usable(::operator new[](n), n, 16, "new[]"), n);
  ::operator delete[](usable(::operator new[](n, nothrow), n, 16, "new[] nothrow"), nothrow);
  ::operator delete(usable(::operator new(n, aligned), n, 256, "aligned new"), aligned);
  ::operator delete(usable(::operator new(n, aligned), n, 256, "aligned new"), n, aligned);
  ::operator delete(usable(::operator new(n, aligned, nothrow), n, 256, "aligned new nothrow"),
                    aligned, nothrow);
  ::operator delete[](usable(::operator new[](n, aligned), n, 256, "aligned new[]"), aligned);
  ::operator delete[](usable(::operator new[](n, aligned), n, 256, "aligned new[]"), n, aligned);
  ::operator delete[](
      usable(::operator new[](n, aligned, nothrow), n, 256, "aligned new[] nothrow"), aligned,
      nothrow);
}

void every_form_serves_every_size() {
  for (size_t n : {0, 1, 8, 16, 40, 100, 1000, 1024, 5000, 65536, 70000, 1 << 20, 9 << 20}) {
    all_forms(n);
  }
  void *first = ::operator new(0), *second = ::operator new(0);
  CHECK(first != second, "operator new(0) gave %p twice", first);
  ::operator delete(first);
  ::operator delete(second);
  ::operator delete(nullptr);
  ::operator delete[](nullptr, 5);
  ::operator delete(nullptr, aligned);
}

void alignments_up_to_two_mebibytes() {
  for (size_t align = 1; align <= (2 << 20); align *= 2) {
    std::align_val_t value{align};
    for (size_t n : {size_t{0}, size_t{1}, align / 2, align, align + 1}) {
      ::operator delete(usable(::operator new(n, value), n, align, "aligned new"), value);
    }
  }
}

void sized_delete_takes_a_wrong_size() {
  for (size_t n : {1, 16, 100, 5000, 70000, 5 << 20}) {
    for (size_t said : {size_t{0}, size_t{1}, n / 2, n + 1, n * 2}) {
      ::operator delete(::operator new(n), said);
      ::operator delete[](::operator new[](n), said);
      ::operator delete(::operator new(n, aligned), said, aligned);
    }
  }
}

int handler_calls;

void give_up_at_the_third_call() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

struct out_of_patience : std::bad_alloc {};

void throw_own_exception() {
  ++handler_calls;
  throw out_of_patience();
}

enum outcome { GOT_NULL, GOT_BLOCK, GOT_BAD_ALLOC, GOT_OWN };

template <class Allocation> outcome outcome_of(std::new_handler handler, Allocation allocation) {
  handler_calls = 0;
  std::set_new_handler(handler);
  outcome seen;
  try {
    seen = opaque(allocation()) == nullptr ? GOT_NULL : GOT_BLOCK;
  } catch (const out_of_patience &) {
    seen = GOT_OWN;
  } catch (const std::bad_alloc &) {
    seen = GOT_BAD_ALLOC;
  }
  std::set_new_handler(nullptr);
  return seen;
}

template <class Allocation>
void expect_outcomes(const char *form, bool throws, Allocation allocation) {
  outcome plain = throws ? GOT_BAD_ALLOC : GOT_NULL, own = throws ? GOT_OWN : GOT_NULL;
  outcome got = outcome_of(nullptr, allocation);
  CHECK(got == plain, "%s without a handler: outcome %d, expected %d", form, got, plain);
  got = outcome_of(give_up_at_the_third_call, allocation);
  CHECK(got == plain, "%s with a handler: outcome %d, expected %d", form, got, plain);
  CHECK(handler_calls == 3, "%s called the handler %d times, expected 3", form, handler_calls);
  got = outcome_of(throw_own_exception, allocation);
  CHECK(got == own, "%s with a throwing handler: outcome %d, expected %d", form, got, own);
  CHECK(handler_calls == 1, "%s called the handler %d times, expected 1", form, handler_calls);
}

void memory_end_follows_the_standard() {
  const auto &nothrow = std::nothrow;
  expect_outcomes("new", true, [] { return ::operator new(huge); });
  expect_outcomes("new[]", true, [] { return ::operator new[](huge); });
  expect_outcomes("aligned new", true, [] { return ::operator new(huge, aligned); });
  expect_outcomes("aligned new[]", true, [] { return ::operator new[](huge, aligned); });
  expect_outcomes("new nothrow", false, [&] { return ::operator new(huge, nothrow); });
  expect_outcomes("new[] nothrow", false, [&] { return ::operator new[](huge, nothrow); });
  expect_outcomes("aligned new nothrow", false,
                  [&] { return ::operator new(huge, aligned, nothrow); });
  expect_outcomes("aligned new[] nothrow", false,
                  [&] { return ::operator new[](huge, aligned, nothrow); });
}

void the_heap_serves_on_after_bad_alloc() {
  for (int i = 0; i < 1000; i++) {
    outcome got = outcome_of(nullptr, [] { return ::operator new(huge); });
    CHECK(got == GOT_BAD_ALLOC, "new of %zu bytes: outcome %d", huge, got);
    ::operator delete(usable(::operator new(1000), 1000, 16, "new after bad_alloc"));
  }
}

struct alignas(128) wide {
  unsigned char bytes[300];
};

std::mutex shared_lock;
std::map<std::string, std::vector<wide>> shared_map;

void fill_containers(int thread) {
  std::list<std::string> names;
  std::deque<std::unique_ptr<wide>> queue;
  std::unordered_map<int, std::shared_ptr<std::string>> table;
  for (int i = 0; i < 3000; i++) {
    names.push_back("a name that is too long for the small string " + std::to_string(i));
    queue.push_back(std::make_unique<wide>());
    CHECK(reinterpret_cast<uintptr_t>(queue.back().get()) % 128 == 0, "new wide is not aligned");
    table[i] = std::make_shared<std::string>(i % 500, 'x');
    std::lock_guard<std::mutex> guard(shared_lock);
    auto &vector = shared_map[names.back()]; // grown by one thread, freed by another
    vector.resize(vector.size() + 1);
    vector.back().bytes[0] = static_cast<unsigned char>(thread);
    if (i % 3 == 0) shared_map.erase(names.front());
    if (i % 5 == 0) names.pop_front();
  }
  for (auto &entry : table) {
    CHECK(entry.second->size() == static_cast<size_t>(entry.first % 500),
          "a shared string changed");
  }
}

void containers_in_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; i++) threads.emplace_back(fill_containers, i);
  for (auto &thread : threads) thread.join();
  for (auto &entry : shared_map) {
    for (auto &item : entry.second) CHECK(item.bytes[0] < 8, "a shared vector changed");
  }
  shared_map.clear();
}

} // namespace

int main() {
  every_form_serves_every_size();
  alignments_up_to_two_mebibytes();
  sized_delete_takes_a_wrong_size();
  memory_end_follows_the_standard();
  the_heap_serves_on_after_bad_alloc();
  containers_in_threads();
  say("ok\n");
  return 0;
}
