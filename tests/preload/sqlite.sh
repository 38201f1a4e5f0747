# sqlite3: a million rows in one transaction, an index, joins, a vacuum, an integrity check.
# runs: always
# reports: sqlite3
# packages: sqlite3
sqlite3 rows.db <<'SQL'
PRAGMA synchronous = OFF;
CREATE TABLE item (id INTEGER PRIMARY KEY, shelf INTEGER, name TEXT, weight REAL);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
  INSERT INTO item SELECT i, (i * 7919) % 1009, 'item ' || (i * 31 % 65537), i * 0.25 FROM n;
COMMIT;
CREATE INDEX by_shelf ON item (shelf, name);
SELECT count(*), sum(weight) FROM item WHERE shelf BETWEEN 100 AND 200;
SELECT shelf, count(*), group_concat(DISTINCT substr(name, 1, 6)) FROM item GROUP BY shelf LIMIT 3;
SELECT count(*) FROM item a JOIN item b ON a.name = b.name AND b.shelf = 5 WHERE a.shelf = 5;
DELETE FROM item WHERE shelf % 3 = 0;
PRAGMA integrity_check;
SELECT md5 FROM (SELECT count(*) || ':' || max(name) AS md5 FROM item);
SQL
sqlite3 rows.db 'SELECT * FROM missing' 2>/dev/null
