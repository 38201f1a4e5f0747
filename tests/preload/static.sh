# A statically linked program has no loader that could preload anything: it runs untouched.
# runs: default
# reports: none
# packages: gcc libc6-dev
cat >untouched.c <<'CODE'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  char *all[1000];
  for (int i = 0; i < 1000; i++) memset(all[i] = malloc(i * 13 + 1), i, i * 13 + 1);
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  int preloaded = 0;
  while (fgets(line, sizeof line, maps) != NULL) preloaded |= strstr(line, "libhakozuna") != NULL;
  for (int i = 0; i < 1000; i++) free(all[i]);
  printf("preloaded %d\n", preloaded);
  return 8;
}
CODE
env -u LD_PRELOAD gcc -O1 -static -o untouched untouched.c
./untouched
