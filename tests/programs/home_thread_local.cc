// thread_local objects whose destructors allocate and free, in threads that outlive each other,
// next to a pthread key and to static objects destroyed at exit.
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/check.h"

namespace {

std::atomic<int> destroyed;

struct farewell {
  std::vector<std::string> words;
  std::unique_ptr<char[]> large{new char[300000]};

  ~farewell() {
    std::map<int, std::string> last;
    for (size_t i = 0; i < words.size(); i++) last[static_cast<int>(i)] = words[i] + words[i];
    for (auto &entry : last) {
      CHECK(entry.second.size() == 2 * words[static_cast<size_t>(entry.first)].size(),
            "lost a word");
    }
    large.reset(new char[500000]);
    large[499999] = 1;
    destroyed++;
  }
};

thread_local farewell in_thread;
farewell at_exit;
pthread_key_t key;

void free_string(void *value) {
  auto *text = static_cast<std::string *>(value);
  *text += std::string(1000, 'y');
  delete text;
}

void speak(int number) {
  for (int i = 0; i < 200; i++) in_thread.words.push_back(std::string(static_cast<size_t>(i), 'x'));
  pthread_setspecific(key, new std::string(static_cast<size_t>(number), 'z'));
}

} // namespace

int main() {
  pthread_key_create(&key, free_string);
  at_exit.words.assign(100, "said at exit, after main");
  for (int round = 0; round < 200; round++) {
    std::thread first(speak, round), second(speak, round);
    first.join();
    second.join();
  }
  CHECK(destroyed == 400, "%d thread_local objects were destroyed, expected 400", destroyed.load());
  speak(1);
  say("ok\n");
  return 0;
}
