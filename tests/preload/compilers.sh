# gcc and g++ -O2 of generated sources, one link with -flto, and the programs that come out.
# runs: default
# reports: *gcc* *g++* cc1 cc1plus *as collect2 lto1
# packages: gcc g++
set -e
{
  echo '#include <stdio.h>'
  for i in {1..250}; do
    cat <<CODE
static unsigned f$i(unsigned x, const unsigned *t) {
  unsigned s = $i;
  for (unsigned i = 0; i < (x & 63); i++) s = s * 31 + (t[(i + $i) & 15] ^ (x << (i & 7)));
  switch (s % 5) { case 0: return s + x; case 1: return s ^ t[3]; case 2: return s * x; default: return ~s; }
}
CODE
  done
  echo 'int main(void) { unsigned t[16], s = 1; for (int i = 0; i < 16; i++) t[i] = i * 77777u;'
  for i in {1..250}; do echo "s += f$i(s, t);"; done
  echo 'printf("%u\n", s); return 0; }'
} >many.c
cat >templates.cc <<'CODE'
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct item { std::map<int, std::string> names; std::vector<std::unique_ptr<int>> all; };
template <int N> int work() {
  item<N> one;
  for (int i = 0; i < 500; i++) { one.names[i * N % 101] += "x"; one.all.push_back(std::make_unique<int>(i)); }
  std::sort(one.all.begin(), one.all.end(), [](auto &a, auto &b) { return *a % (N + 3) < *b % (N + 3); });
  return std::accumulate(one.all.begin(), one.all.end(), (int)one.names.size(), [](int s, auto &p) { return s * 3 + *p; });
}
template <int N> struct all_of { static int sum() { return work<N>() ^ all_of<N - 1>::sum(); } };
template <> struct all_of<0> { static int sum() { return 1; } };
int main() { std::cout << all_of<8>::sum() << std::endl; return 0; }
CODE
gcc -O2 -c -o many.o many.c
g++ -O2 -c -o templates.o templates.cc
md5sum many.o templates.o
gcc -o many many.o
g++ -o templates templates.o
gcc -O2 -flto=1 -o many_lto many.c
./many && ./templates && ./many_lto
echo 'int main(void) { return missing; }' >broken.c
gcc -c broken.c 2>&1
