# java: its version, and a program with threads, direct buffers and a child process, compiled by
# the launcher itself.
# runs: default
# reports: java
# packages: default-jdk-headless
java -version 2>&1
cat >Work.java <<'PROGRAM'
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class Work {
  static long sum(int seed) throws Exception {
    List<ByteBuffer> buffers = new ArrayList<>();
    CRC32 crc = new CRC32();
    Deflater deflater = new Deflater();
    for (int i = 0; i < 400; i++) {
      ByteBuffer b = ByteBuffer.allocateDirect(1 + (i * 977 + seed) % 60000);
      for (int k = 0; k < b.capacity(); k += 64) b.put(k, (byte) (i + k));
      crc.update(b.duplicate());
      buffers.add(b);
    }
    byte[] out = new byte[100000];
    deflater.setInput(new byte[300000]);
    deflater.finish();
    int packed = deflater.deflate(out);
    deflater.end();
    return crc.getValue() + packed;
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Long>> sums = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      int seed = i;
      sums.add(pool.submit(() -> sum(seed)));
    }
    for (Future<Long> s : sums) System.out.println(s.get());
    pool.shutdown();
    Process child = new ProcessBuilder("sh", "-c", "exit 9").start();
    System.out.println("child " + child.waitFor());
    System.exit(7);
  }
}
PROGRAM
java -Xmx128m Work.java
