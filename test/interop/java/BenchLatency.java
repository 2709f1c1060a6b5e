import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * BenchLatency NAMESERVER GROUP TOPIC COUNT: a body starts with the producer's clock, nanoseconds since the epoch, as 8 bytes.
 * Prints "#ready", then "latency NANOS..." once COUNT messages were handled.
 */
public class BenchLatency {
    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[3]);
        long[] latency = new long[count];
        AtomicInteger seen = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(1);
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(args[1]);
        c.setNamesrvAddr(args[0]);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(args[2], "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            java.time.Instant now = java.time.Instant.now();
            long at = now.getEpochSecond() * 1_000_000_000L + now.getNano();
            for (MessageExt m : ms) {
                int i = seen.getAndIncrement();
                if (i < count) {
                    latency[i] = at - ByteBuffer.wrap(m.getBody()).getLong();
                }
            }
            if (seen.get() >= count) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        System.out.println("#ready");
        done.await();
        StringBuilder out = new StringBuilder("latency");
        for (long l : latency) {
            out.append(' ').append(l);
        }
        System.out.println(out);
        c.shutdown();
        System.exit(0);
    }
}
