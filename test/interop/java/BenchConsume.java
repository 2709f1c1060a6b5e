import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** BenchConsume NAMESERVER GROUP TOPIC COUNT default|tuned: drains COUNT messages; prints "result NANOS CPUNANOS" from the first to the last. */
public class BenchConsume {
    public static void main(String[] args) throws Exception {
        long count = Long.parseLong(args[3]);
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(args[1]);
        c.setNamesrvAddr(args[0]);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(args[2], "*");
        if (args[4].equals("tuned")) {
            c.setPullBatchSize(1024);
            c.setConsumeMessageBatchMaxSize(256);
            c.setPullThresholdForQueue(50000);
            c.setPullThresholdSizeForQueue(512);
            c.setConsumeConcurrentlyMaxSpan(60000);
            c.setConsumeThreadMin(4);
            c.setConsumeThreadMax(4);
        }
        OperatingSystemMXBean os = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        AtomicLong seen = new AtomicLong(), firstNanos = new AtomicLong(), firstCpu = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            long n = seen.addAndGet(ms.size());
            if (n == ms.size()) {
                firstCpu.set(os.getProcessCpuTime());
                firstNanos.set(System.nanoTime());
            }
            if (n >= count) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        done.await();
        System.out.println("result " + (System.nanoTime() - firstNanos.get()) + " " + (os.getProcessCpuTime() - firstCpu.get()));
        c.shutdown();
        System.exit(0);
    }
}
