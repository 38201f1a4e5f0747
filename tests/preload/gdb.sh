# gdb's own start, and gdb running a program: both under the library.
# runs: default
# reports: gdb ls
# packages: gdb
gdb -nx -batch -ex 'print 1+1' -ex 'python print(sum(range(10)))' 2>/dev/null
mkdir folder
touch folder/one folder/two
gdb -nx -batch -ex 'set startup-with-shell off' -ex 'set debuginfod enabled off' -ex 'run' \
  -ex 'info inferiors' --args ls folder 2>/dev/null | grep -v -E '^(warning|\[|Using host)' |
  sed -E 's/process [0-9]+/process N/'
