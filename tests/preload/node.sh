# node: JSON, buffers, worker threads that share memory, zlib, a child process.
# runs: default
# reports: node*
# packages: nodejs
cat >work.js <<'PROGRAM'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
const zlib = require('zlib');

function digest(seed) {
  const rows = [];
  for (let i = 0; i < 20000; i++) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    rows.push({ id: i, name: 'n' + seed, tags: [seed % 7, seed % 11] });
  }
  const text = JSON.stringify(JSON.parse(JSON.stringify(rows)));
  const buffers = [];
  for (let i = 0; i < 2000; i++) buffers.push(Buffer.alloc(1 + (i * 97) % 20000, i % 256));
  const packed = zlib.deflateSync(Buffer.concat([Buffer.from(text), ...buffers]));
  return crypto.createHash('md5').update(zlib.inflateSync(packed)).digest('hex');
}

if (!isMainThread) {
  Atomics.add(new Int32Array(workerData.shared), 0, 1);
  parentPort.postMessage(digest(workerData.seed));
} else {
  const shared = new SharedArrayBuffer(4);
  const one = (seed) => new Promise((done, failed) => {
    const worker = new Worker(__filename, { workerData: { seed, shared } });
    worker.on('message', done);
    worker.on('error', failed);
  });
  Promise.all([1, 2, 3, 4].map(one)).then((digests) => {
    console.log(digests.join(' '), digest(1) === digests[0], new Int32Array(shared)[0]);
    console.log(require('child_process').execSync('echo from a child').toString().trim());
    process.exitCode = 6;
  });
}
PROGRAM
node work.js
