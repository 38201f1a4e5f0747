-- A database in memory as a program would use it: rows made, indexed, changed, joined, summed up,
-- deleted. About 0.4 s. The same work every time; it checks its own results.
--
--   sqlite3 -batch :memory: ".read bench/real/work.sql"
--
-- A wrong result violates a constraint of `expected`, and the exit code is not 0.
.bail on
PRAGMA cache_size = -65536;

CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, town TEXT NOT NULL);
CREATE TABLE sale (
  id INTEGER PRIMARY KEY,
  customer INTEGER NOT NULL REFERENCES customer (id),
  cents INTEGER NOT NULL,
  note TEXT NOT NULL
);
CREATE TABLE expected (
  what TEXT NOT NULL,
  found INTEGER,
  wanted INTEGER NOT NULL,
  CONSTRAINT wrong_result CHECK (found IS wanted)
);

-- Numbers that look random and are the same on every machine: products modulo primes.
WITH RECURSIVE count (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM count WHERE i < 5000)
INSERT INTO customer
SELECT i, printf('customer %05d', i * 7919 % 99991), 'town ' || (i * 31 % 97) FROM count;

WITH RECURSIVE count (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM count WHERE i < 150000)
INSERT INTO sale
SELECT i, 1 + i * 7919 % 5000, i * 104729 % 10007,
  substr('a note on a sale that is of some length, more or less', 1, 5 + i * 13 % 48)
FROM count;

CREATE INDEX sale_by_customer ON sale (customer, cents);
CREATE INDEX customer_by_town ON customer (town);

CREATE TABLE summary AS
SELECT c.town, count(*) AS sales, sum(s.cents) AS cents,
  group_concat(DISTINCT length(s.note)) AS lengths
FROM customer c JOIN sale s ON s.customer = c.id
GROUP BY c.town ORDER BY cents DESC;

UPDATE sale SET note = upper(replace(note, 'sale', 'return')) WHERE id % 5 = 0;
DELETE FROM sale WHERE cents < 1000;
CREATE TABLE longest AS
SELECT note || ' / ' || name AS text
FROM sale JOIN customer ON customer.id = sale.customer
ORDER BY length(text) DESC, text LIMIT 20000;

INSERT INTO expected SELECT 'sales', (SELECT sum(sales) FROM summary), 150000;
INSERT INTO expected SELECT 'cents', (SELECT sum(cents) FROM summary), 750455297;
INSERT INTO expected SELECT 'sales left', (SELECT count(*) FROM sale), 135012;
INSERT INTO expected SELECT 'returns',
  (SELECT count(*) FROM sale WHERE note LIKE '%RETURN%'), 20816;
INSERT INTO expected SELECT 'length', (SELECT sum(length(text)) FROM longest), 1327519;
INSERT INTO expected SELECT 'towns', (SELECT count(DISTINCT town) FROM customer), 97;
