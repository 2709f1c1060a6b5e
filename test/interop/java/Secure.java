import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * Secure NAMESERVER KEY SECRET NAMESPACE CA TOPIC OUTPUT GROUP COUNT: a client with keys, a namespace and TLS; "-" leaves one out. Sends COUNT
 * messages "java-N" to TOPIC, prints "sent N", sends one to OUTPUT and prints "refused CODE" or "sent output"; then it consumes TOPIC in
 * GROUP and prints "got BODY TOPIC" for each delivery, until a line or the end of standard input.
 */
public class Secure {
    /** The broker's code: after several tries it is in the cause. Otherwise what went wrong in words. */
    private static String code(Exception e) {
        for (Throwable t = e; t != null; t = t.getCause()) {
            if (t instanceof MQBrokerException) {
                return Integer.toString(((MQBrokerException) t).getResponseCode());
            }
        }
        return e.toString().replace('\n', ' ');
    }

    /** Waits until the name server answers: a JVM's first handshake may take longer than the client waits. */
    private static void route(DefaultMQProducer p, String topic) throws InterruptedException {
        for (long end = System.nanoTime() + 60_000_000_000L; System.nanoTime() < end; Thread.sleep(500)) {
            try {
                p.fetchPublishMessageQueues(topic);
                return;
            } catch (MQClientException e) {
                System.out.println("no route of " + topic + ": " + code(e));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        if (!args[4].equals("-")) { // read by the client's classes when they are loaded
            System.setProperty("tls.enable", "true");
            System.setProperty("tls.test.mode.enable", "false");
            System.setProperty("tls.client.authServer", "true");
            System.setProperty("tls.client.trustCertPath", args[4]);
        }
        RPCHook hook = args[1].equals("-") ? null : new AclClientRPCHook(new SessionCredentials(args[1], args[2]));
        DefaultMQProducer p = new DefaultMQProducer("secure-producer", hook);
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(args[7], hook, new AllocateMessageQueueAveragely());
        p.setNamesrvAddr(args[0]);
        c.setNamesrvAddr(args[0]);
        p.setMqClientApiTimeout(30000); // a first request takes long on a busy machine; without an answer the start fails
        c.setMqClientApiTimeout(30000);
        if (!args[3].equals("-")) {
            p.setNamespace(args[3]);
            c.setNamespace(args[3]);
        }
        p.setRetryTimesWhenSendFailed(0);
        p.setSendMsgTimeout(60000);
        p.setInstanceName("secure-p" + ProcessHandle.current().pid());
        c.setInstanceName("secure-c" + ProcessHandle.current().pid());
        p.start();
        route(p, args[5]);
        route(p, args[6]);
        for (int i = 0; i < Integer.parseInt(args[8]); i++) {
            try {
                p.send(new Message(args[5], ("java-" + i).getBytes(StandardCharsets.UTF_8)));
                System.out.println("sent " + i);
            } catch (MQBrokerException | MQClientException e) {
                System.out.println("refused " + code(e));
            }
        }
        try {
            p.send(new Message(args[6], "output".getBytes(StandardCharsets.UTF_8)));
            System.out.println("sent output");
        } catch (MQBrokerException | MQClientException e) {
            System.out.println("output refused " + code(e));
        }
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(args[5], "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            synchronized (System.out) {
                for (MessageExt m : ms) {
                    System.out.println("got " + new String(m.getBody(), StandardCharsets.UTF_8) + " " + m.getTopic());
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        System.out.println("#ready");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        c.shutdown();
        p.shutdown();
        System.out.println("#done");
        System.exit(0);
    }
}
