import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Consume NAMESERVER GROUP TOPIC TAGS [broadcast]: a push consumer. Prints "got ID BODY ATTEMPT QUEUE OFFSET" for each delivery.
 * A body that starts with "fail" is retried for ever; a line or the end of standard input stops it cleanly.
 */
public class Consume {
    /** MessageModel lies in another package in 4.9. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void broadcast(DefaultMQPushConsumer c) throws Exception {
        for (java.lang.reflect.Method m : c.getClass().getMethods()) {
            if (m.getName().equals("setMessageModel")) {
                m.invoke(c, Enum.valueOf((Class) m.getParameterTypes()[0], "BROADCASTING"));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(args[1]);
        c.setNamesrvAddr(args[0]);
        c.setMqClientApiTimeout(30000); // a first request takes long on a busy machine; without an answer the start fails
        c.setInstanceName("consume" + ProcessHandle.current().pid());
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(args[2], args[3]);
        if (args.length > 4 && args[4].equals("broadcast")) {
            broadcast(c);
        }
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            StringBuilder out = new StringBuilder();
            boolean fail = false;
            for (MessageExt m : ms) {
                String body = new String(m.getBody(), StandardCharsets.UTF_8).trim();
                fail |= body.startsWith("fail");
                out.append("got ").append(m.getMsgId()).append(' ').append(body).append(' ').append(m.getReconsumeTimes() + 1)
                    .append(' ').append(m.getBrokerName()).append('/').append(m.getQueueId()).append(' ').append(m.getQueueOffset()).append('\n');
            }
            synchronized (System.out) {
                System.out.print(out);
                System.out.flush();
            }
            return fail ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        System.out.println("#ready " + c.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId());
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        c.shutdown();
        System.out.println("#done");
        System.exit(0);
    }
}
