import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Inspect NAMESERVER GROUP TOPIC: prints what a Java consumer sees of each message, "msg FORM" with FORM in
 * application/x-www-form-urlencoded: body (without blanks at its end), length, id, tag, keys, flag, queue, and each property as "p.NAME".
 */
public class Inspect {
    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(args[1]);
        c.setNamesrvAddr(args[0]);
        c.setMqClientApiTimeout(30000); // a first request takes long on a busy machine; without an answer the start fails
        c.setInstanceName("inspect" + ProcessHandle.current().pid());
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(args[2], "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            for (MessageExt m : ms) {
                Map<String, String> out = new TreeMap<>();
                m.getProperties().forEach((k, v) -> out.put("p." + k, v));
                out.put("body", new String(m.getBody(), StandardCharsets.UTF_8).stripTrailing());
                out.put("length", "" + m.getBody().length);
                out.put("id", m.getMsgId());
                out.put("tag", "" + m.getTags());
                out.put("keys", "" + m.getKeys());
                out.put("flag", "" + m.getFlag());
                out.put("queue", m.getBrokerName() + "/" + m.getQueueId());
                StringBuilder line = new StringBuilder("msg ");
                out.forEach((k, v) -> line.append(enc(k)).append('=').append(enc(v)).append('&'));
                synchronized (System.out) {
                    System.out.println(line.substring(0, line.length() - 1));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        System.out.println("#ready");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        c.shutdown();
        System.exit(0);
    }

    private static String enc(String s) {
        return URLEncoder.encode(s, StandardCharsets.UTF_8);
    }
}
