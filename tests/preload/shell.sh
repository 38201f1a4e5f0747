# Pipelines, substitutions, arrays, here-documents and background jobs of bash.
# runs: always
# reports: bash cat tr wc
# packages: bash coreutils
for i in $(seq 1 200); do echo "line $i $((i * i % 97))"; done | tr a-z A-Z | wc -c
declare -A seen
while read -r word number square; do
  seen[$square]=$((${seen[$square]:-0} + number))
done < <(for i in $(seq 1 3000); do echo "w $i $((i * i % 251))"; done)
for key in "${!seen[@]}"; do echo "$key ${seen[$key]}"; done | sort -n | md5sum
text=$(cat <<TEXT
$(printf '%s-' {1..500})
TEXT
)
echo "${#text} ${text//-1/_} " | cut -c1-80
for i in 1 2 3 4 5 6 7 8; do (sleep 0.0$i; exit "$i") & jobs_list+=($!); done
for job in "${jobs_list[@]}"; do wait "$job"; echo "job ended with $?"; done
printf '%s\n' {1..20000} >numbers
mapfile -t lines <numbers
echo "${#lines[@]} ${lines[-1]}"
big=
for i in {1..2000}; do big+="chunk $i;"; done
echo "${#big}"
exit 3
