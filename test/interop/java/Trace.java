import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Trace NAMESERVER GROUP TOPIC: a producer and a push consumer with RocketMQ's own message trace switched on. Sends "ok java" and
 * "fail-1 java", which fails once, prints "sent ID BODY" and "done ID BODY" for each that was handled. A line or the end of
 * standard input stops it cleanly, which writes the rest of the trace.
 */
public class Trace {
    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(args[1], null, new AllocateMessageQueueAveragely(), true, null);
        c.setNamesrvAddr(args[0]);
        c.setMqClientApiTimeout(30000); // a first request takes long on a busy machine; without an answer the start fails
        c.setInstanceName("trace" + ProcessHandle.current().pid());
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(args[2], "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            MessageExt m = ms.get(0);
            String body = new String(m.getBody(), StandardCharsets.UTF_8);
            if (body.startsWith("fail-1") && m.getReconsumeTimes() == 0) {
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            System.out.println("done " + m.getMsgId() + " " + body);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        DefaultMQProducer p = new DefaultMQProducer("trace-java-producer", null, true, null);
        p.setNamesrvAddr(args[0]);
        p.setInstanceName("traceproducer" + ProcessHandle.current().pid());
        p.setMqClientApiTimeout(30000); // a JVM's first request takes long on a busy machine
        p.setSendMsgTimeout(60000);
        p.start();
        for (String body : new String[] {"ok java", "fail-1 java"}) {
            Message m = new Message(args[2], body.startsWith("ok") ? "tag" : null, body.startsWith("ok") ? "k1 k2" : null, body.getBytes(StandardCharsets.UTF_8));
            SendResult r = p.send(m);
            System.out.println("sent " + r.getMsgId() + " " + body);
        }
        System.out.println("#ready");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        p.shutdown();
        c.shutdown();
        System.out.println("#done");
        System.exit(0);
    }
}
