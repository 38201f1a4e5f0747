// A source file that keeps a C++ compiler busy for about 0.8 s: templates of the standard library
// in many instances. It is compiled, never run: what is measured is the compiler.
//
//   g++ -std=c++17 -O1 -c -o /dev/null bench/real/work.cc
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

// A type of its own per number, so that each use is a new instance of every template.
template <int N> struct Item {
  int key = N;
  std::string name;
  std::vector<std::pair<int, std::string>> notes;
  bool operator<(const Item &other) const {
    return std::tie(name, key) < std::tie(other.name, other.key);
  }
};

template <int N> using Table = std::map<std::string, std::unique_ptr<Item<N>>>;
template <int N> using Value = std::variant<int, std::string, Item<N>, std::vector<Item<N>>>;

template <int N> struct Weight {
  std::size_t operator()(int) const { return 1; }
  std::size_t operator()(const std::string &text) const { return text.size(); }
  std::size_t operator()(const Item<N> &item) const { return item.notes.size(); }
  std::size_t operator()(const std::vector<Item<N>> &items) const { return items.size(); }
};

template <int N> std::optional<std::size_t> weigh_table(const Table<N> &table) {
  std::vector<Item<N>> items;
  for (const auto &[name, item] : table) {
    if (item) items.push_back(*item);
  }
  if (items.empty()) return std::nullopt;
  std::sort(items.begin(), items.end());
  items.erase(std::remove_if(items.begin(), items.end(),
                             [](const Item<N> &item) { return item.key % 7 == N % 7; }),
              items.end());
  return std::accumulate(items.begin(), items.end(), std::size_t{0},
                         [](std::size_t sum, const Item<N> &item) { return sum + item.key; });
}

template <int N> std::size_t weigh(const Table<N> &table, const std::vector<Value<N>> &values) {
  std::function<std::size_t(const Value<N> &)> weight = [](const Value<N> &value) {
    return std::visit(Weight<N>{}, value);
  };
  std::size_t sum = weigh_table<N>(table).value_or(0);
  for (const auto &value : values) sum += weight(value);
  return sum;
}

template <int... N> std::size_t weigh_all(std::integer_sequence<int, N...>) {
  return (weigh<N>(Table<N>{}, std::vector<Value<N>>{}) + ...);
}

} // namespace

std::size_t work() {
  return weigh_all(std::make_integer_sequence<int, 2>{});
}
