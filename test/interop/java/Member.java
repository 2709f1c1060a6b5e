import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Member NAMESERVER GROUP TOPIC LEDGER none|queue: a push consumer that keeps the ledger and behaves as the first word of the
 * body says, as the ledger plugin does. A line or the end of standard input stops it cleanly.
 */
public class Member {
    private static FileOutputStream file;
    private static final long pid = ProcessHandle.current().pid();

    private static void write(MessageExt m, String event, String error) throws IOException {
        long now = System.currentTimeMillis() * 1_000_000;
        String line = "{\"event\":\"" + event + "\",\"id\":\"" + m.getMsgId() + "\",\"body\":\"" + body(m) + "\",\"attempt\":" + (m.getReconsumeTimes() + 1)
            + ",\"queue\":\"" + m.getTopic() + "/" + m.getBrokerName() + "/" + m.getQueueId() + "\",\"offset\":" + m.getQueueOffset()
            + ",\"pid\":" + pid + ",\"host\":" + pid + ",\"at\":" + now + (error.isEmpty() ? "" : ",\"error\":\"" + error + "\"") + "}\n";
        file.write(line.getBytes(StandardCharsets.UTF_8)); // one write: lines of several processes do not mix
    }

    private static String body(MessageExt m) {
        return new String(m.getBody(), StandardCharsets.UTF_8).trim();
    }

    /** Handles a message; what it returns is empty for a success. */
    private static String handle(MessageExt m) throws Exception {
        write(m, "start", "");
        String verdict = "";
        String word = body(m).split(" ")[0];
        String[] parts = word.split("-");
        if (parts[0].equals("fail") && m.getReconsumeTimes() < Integer.parseInt(parts[1])) {
            verdict = "told to fail";
        } else if (parts[0].equals("reject")) {
            verdict = "told to reject";
        } else if (parts[0].equals("slow")) {
            try {
                Thread.sleep(Long.parseLong(parts[1]));
            } catch (InterruptedException e) { // a consumer that shuts down interrupts its listeners and sends back what they had
                write(m, "end", "interrupted");
                throw e;
            }
        }
        write(m, "end", verdict);
        return verdict;
    }

    public static void main(String[] args) throws Exception {
        file = new FileOutputStream(args[3], true);
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(args[1]);
        c.setNamesrvAddr(args[0]);
        c.setMqClientApiTimeout(30000); // a first request takes long on a busy machine; without an answer the start fails
        c.setInstanceName("member" + pid);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setSuspendCurrentQueueTimeMillis(200);
        c.subscribe(args[2], "*");
        if (args[4].equals("queue")) {
            c.registerMessageListener((MessageListenerOrderly) (ms, context) -> {
                try {
                    for (MessageExt m : ms) {
                        if (!handle(m).isEmpty()) {
                            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                        }
                    }
                    return ConsumeOrderlyStatus.SUCCESS;
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
                try {
                    boolean failed = false;
                    for (MessageExt m : ms) {
                        String verdict = handle(m);
                        failed |= !verdict.isEmpty();
                        if (verdict.equals("told to reject")) {
                            context.setDelayLevelWhenNextConsume(-1);
                        }
                    }
                    return failed ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
        }
        c.start();
        System.out.println("#ready");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        c.shutdown();
        System.out.println("#done");
        System.exit(0);
    }
}
