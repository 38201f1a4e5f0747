# Walking and copying a tree of 1,500 files: ls -lR, find, cp -a, tar, diff -r.
# runs: default
# reports: ls find cp tar diff du
# packages: coreutils findutils tar diffutils
mkdir tree
for d in {1..30}; do
  mkdir "tree/d$d"
  for f in {1..50}; do echo "file $f of $d" >"tree/d$d/f$f"; done
done
find tree -exec touch -d 2020-02-02T02:02:02Z {} +
ls -lR tree | grep -v '^total' | md5sum
find tree -type f -name '*7' -printf '%p %s\n' | sort | md5sum
cp -a tree copy
tar -cf tree.tar tree
mkdir out
tar -xf tree.tar -C out
diff -r tree copy && diff -r tree out/tree && echo same
du -a --apparent-size tree/d1 | sort -k2 | tail -n 3
tar -czf - tree | tar -tzf - | sort | md5sum
ls no-such-folder 2>/dev/null
