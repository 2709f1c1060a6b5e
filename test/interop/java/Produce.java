import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/**
 * Produce NAMESERVER TOPIC COUNT SIZE BATCH [TAG [RATE [COMPRESSION]]]: bodies "java-N" padded with blanks; prints "sent ID BODY" for each.
 * COMPRESSION is ZLIB, LZ4 or ZSTD (5.x); bodies above 4 KiB are compressed.
 */
public class Produce {
    public static void main(String[] args) throws Exception {
        if (args.length > 7) {
            System.setProperty("rocketmq.message.compressType", args[7]); // read by the producer's constructor
        }
        DefaultMQProducer p = new DefaultMQProducer("java-producer");
        p.setNamesrvAddr(args[0]);
        p.setInstanceName("produce" + ProcessHandle.current().pid());
        p.setMqClientApiTimeout(30000); // a JVM's first request takes long on a busy machine
        p.setSendMsgTimeout(60000);
        p.start();
        int count = Integer.parseInt(args[2]), size = Integer.parseInt(args[3]), batch = Integer.parseInt(args[4]);
        String tag = args.length > 5 ? args[5] : "";
        double rate = args.length > 6 ? Double.parseDouble(args[6]) : 0;
        long start = System.nanoTime();
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < count; i += batch) {
            List<Message> ms = new ArrayList<>();
            for (int j = i; j < Math.min(count, i + batch); j++) {
                StringBuilder b = new StringBuilder("java-" + j);
                while (b.length() < size) {
                    b.append(' ');
                }
                Message m = new Message(args[1], tag, "key-" + j, b.toString().getBytes(StandardCharsets.UTF_8));
                m.putUserProperty("n", Integer.toString(j));
                ms.add(m);
            }
            SendResult r = batch == 1 ? p.send(ms.get(0)) : p.send(ms);
            String[] ids = r.getMsgId().split(",");
            for (int j = 0; j < ms.size(); j++) {
                out.append("sent ").append(ids[Math.min(j, ids.length - 1)]).append(" java-").append(i + j).append('\n');
            }
            if (rate > 0) {
                System.out.print(out);
                System.out.flush();
                out.setLength(0);
                long due = start + (long) ((i + batch) * 1e9 / rate);
                for (long now; (now = System.nanoTime()) < due; ) {
                    java.util.concurrent.locks.LockSupport.parkNanos(due - now);
                }
            }
        }
        System.out.print(out);
        System.out.println("#done");
        p.shutdown();
        System.exit(0);
    }
}
