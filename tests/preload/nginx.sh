# nginx with two workers under ab: small and large files, a redirect, a missing page, a reload.
# runs: default
# reports: nginx ab
# packages: nginx-light apache2-utils python3
source "$(dirname "$0")/support/server.sh"
mkdir logs files
port=$(free_port)
head -c 2000000 /dev/zero | tr '\0' x >files/large
echo small >files/small
cat >nginx.conf <<CONF
daemon off;
worker_processes 2;
pid $PWD/nginx.pid;
error_log $PWD/logs/error.log;
events { worker_connections 256; }
http {
  access_log $PWD/logs/access.log;
  client_body_temp_path $PWD/t1; proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3;
  uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5;
  server {
    listen 127.0.0.1:$port;
    root $PWD/files;
    gzip on; gzip_types *;
    location /moved { return 301 /small; }
  }
}
CONF
# Workers of a server that root starts run as nobody and must reach the files.
chmod 755 . files
[[ $(id -u) == 0 ]] && sed -i '1i user root;' nginx.conf
nginx -p "$PWD" -e "$PWD/logs/error.log" -c "$PWD/nginx.conf" &
servers+=($!)
load() { ab -q -n "$1" -c 20 "${@:3}" "http://127.0.0.1:$port/$2" 2>&1 |
  grep -E '^(Complete requests|Failed requests|Non-2xx|Document Length)'; }
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$port"); }
wait_until answers || exit
load 4000 small
load 4000 small -k
load 100 large
load 50 large -H 'Accept-Encoding: gzip' | grep -v Length
load 500 moved
load 500 missing
kill -HUP "${servers[-1]}"
load 1000 small
stop_server
