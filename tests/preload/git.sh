# git: init, a commit of 2,000 files, a second commit, gc, clone, fsck, log, blame, diff.
# runs: default
# reports: git
# packages: git
export GIT_AUTHOR_DATE='2020-02-02T02:02:02Z' GIT_COMMITTER_DATE='2020-02-02T02:02:02Z'
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
set -e
git init -q -b main repository
cd repository
for i in {1..2000}; do
  folder=d$((i % 40))
  [[ -d $folder ]] || mkdir "$folder"
  printf 'file %d\n%s\n' "$i" {1..20} >"$folder/f$i"
done
git add .
git commit -q -m 'two thousand files'
for i in {1..200}; do echo "changed $i" >>"d$((i % 40))/f$i"; done
git commit -q -a -m 'two hundred changed'
git rev-parse HEAD
git gc -q --prune=now
git fsck --full --strict 2>&1
git count-objects -v | grep -E '^(count|in-pack|packs|garbage)'
cd ..
git clone -q --no-local repository clone
git -C clone log --stat | md5sum
git -C clone diff HEAD~1 | md5sum
git -C clone blame -s d1/f1 | tail -n 2
git -C clone show no-such-revision 2>/dev/null
