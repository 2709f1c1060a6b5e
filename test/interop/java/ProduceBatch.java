import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** ProduceBatch NAMESERVER TOPIC BODY...: sends the bodies as one batch. */
public class ProduceBatch {
    public static void main(String[] args) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("java-producer");
        p.setNamesrvAddr(args[0]);
        p.setInstanceName("batch" + ProcessHandle.current().pid());
        p.setMqClientApiTimeout(30000); // a JVM's first request takes long on a busy machine
        p.setSendMsgTimeout(60000);
        p.start();
        List<Message> ms = new ArrayList<>();
        for (int i = 2; i < args.length; i++) {
            ms.add(new Message(args[1], args[i].getBytes(StandardCharsets.UTF_8)));
        }
        System.out.println("sent " + p.send(ms).getSendStatus());
        System.out.println("#done");
        p.shutdown();
        System.exit(0);
    }
}
