# perl: hashes, regular expressions, sorting, strings that grow, fork.
# runs: always
# reports: perl
# packages: perl
PERL_HASH_SEED=0 perl - <<'PROGRAM'
use strict;
use warnings;
my ($x, %count, @rows) = (7);
for my $i (1 .. 120000) {
  $x = ($x * 69069 + 12345) % 4294967296;
  $count{"k" . $x % 9973} .= chr(65 + $i % 26);
  push @rows, [$x, "row $i"] if $i % 3 == 0;
}
my @sorted = sort { $a->[0] <=> $b->[0] } @rows;
print scalar(keys %count), " $sorted[0][1] $sorted[-1][1]\n";
my $text = join ",", map { "$_=$count{$_}" } sort keys %count;
my $found = () = $text =~ /(\w)\1/g;
print length($text), " $found\n";
$text =~ s/([A-Z]+)/lc($1) x 2/ge;
print length($text), "\n";
for my $child (1 .. 4) {
  my $pid = fork() // die;
  if ($pid == 0) { my @more = map { "x" x $_ } 1 .. 2000; exit(@more == 2000 ? $child : 99) }
  waitpid $pid, 0;
  print "child ", $? >> 8, "\n";
}
exit 4;
PROGRAM
