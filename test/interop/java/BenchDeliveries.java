import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * BenchDeliveries NAMESERVER GROUP TOPIC[,TOPIC...]: prints "#ready", then "got QUEUE OFFSET NANOS" for each delivery, nanoseconds since the epoch.
 * A line or the end of standard input stops it cleanly.
 */
public class BenchDeliveries {
    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(args[1]);
        c.setNamesrvAddr(args[0]);
        c.setInstanceName("deliveries" + ProcessHandle.current().pid());
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        for (String topic : args[2].split(",")) {
            c.subscribe(topic, "*");
        }
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            java.time.Instant now = java.time.Instant.now();
            StringBuilder out = new StringBuilder();
            for (MessageExt m : ms) {
                out.append("got ").append(m.getBrokerName()).append('/').append(m.getQueueId()).append(' ').append(m.getQueueOffset())
                    .append(' ').append(now.getEpochSecond() * 1_000_000_000L + now.getNano()).append('\n');
            }
            synchronized (System.out) {
                System.out.print(out);
                System.out.flush();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        System.out.println("#ready");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        c.shutdown();
        System.out.println("#done");
        System.exit(0);
    }
}
