import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Feed NAMESERVER TOPIC MARK RATE: sends "ok MARK/N" with growing N until a line or the end of standard input, and each again
 * until it is acknowledged, which it tells as "sent ok MARK/N". At the end it prints "#done".
 */
public class Feed {
    private static volatile boolean over;

    public static void main(String[] args) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("java-feed");
        p.setNamesrvAddr(args[0]);
        p.setMqClientApiTimeout(30000); // a first request takes long on a busy machine
        p.setInstanceName("feed" + ProcessHandle.current().pid());
        p.setRetryTimesWhenSendFailed(0);
        p.start();
        Thread sender = new Thread(() -> {
            long pause = 1000 / Long.parseLong(args[3]);
            for (int n = 0; !over; n++) {
                String body = "ok " + args[2] + "/" + n;
                while (!send(p, new Message(args[1], body.getBytes(StandardCharsets.UTF_8)))) {
                    if (over || !rest(pause)) {
                        return;
                    }
                }
                System.out.println("sent " + body);
                if (!rest(pause)) {
                    return;
                }
            }
        });
        sender.start();
        System.out.println("#ready");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        over = true;
        sender.join();
        System.out.println("#done");
        p.shutdown();
        System.exit(0);
    }

    /** Tells whether the broker acknowledged the message: no answer is no acknowledgment. */
    private static boolean send(DefaultMQProducer p, Message m) {
        try {
            SendResult r = p.send(m);
            return r.getSendStatus() == SendStatus.SEND_OK;
        } catch (Exception e) {
            return false;
        }
    }

    private static boolean rest(long millis) {
        try {
            Thread.sleep(millis);
            return true;
        } catch (InterruptedException e) {
            return false;
        }
    }
}
