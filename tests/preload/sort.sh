# Text tools on a large file: sort in several ways, cut, uniq, join, comm, md5sum.
# runs: always
# reports: *awk sort cut uniq md5sum
# packages: coreutils mawk
awk 'BEGIN { x = 1; for (i = 0; i < 300000; i++) { x = (x * 69069 + 12345) % 4294967296
             printf "%d\tkey%d\t%d\n", x, x % 5003, i } }' >lines
sort -n lines | md5sum
sort -n --parallel=2 -S 4M -T . lines | md5sum
sort -k2,2 -s -u lines | wc -l
cut -f2 lines | sort | uniq -c | sort -rn | head -n 3
cut -f3 lines | sort >left
cut -f3 lines | tac | sort | sed -n 'p;n' >right
comm -12 left right | wc -l
join left right | tail -n 1
md5sum lines | cut -c1-32
sort no-such-file 2>/dev/null
