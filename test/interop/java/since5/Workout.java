import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/**
 * Workout NAMESERVER TOPIC: does with the official client all that an application can, on TOPIC, TOPICorder, TOPICtrans, TOPICtime, TOPICreq, and
 * prints "outcome NAME TEXT" for each piece; TEXT says what came of it and is the same on every broker that behaves the same.
 */
public class Workout {
    /** How long a piece waits for what must come, in seconds. */
    private static final int PATIENCE = 180;

    private static String ns;
    private static String topic;

    private interface Piece {
        String run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        ns = args[0];
        topic = args[1];
        piece("produce", Workout::produce);
        Thread[] all = {
            start("push", Workout::push), start("broadcast", Workout::broadcast), start("sql", Workout::sql), start("order", Workout::order),
            start("transaction", Workout::transaction), start("time", Workout::time), start("request", Workout::request),
            start("lite pull", Workout::litePull), start("pull", Workout::pull),
        };
        for (Thread t : all) {
            t.join();
        }
        System.out.println("#done");
        System.exit(0);
    }

    private static Thread start(String name, Piece p) {
        Thread t = new Thread(() -> piece(name, p));
        t.start();
        return t;
    }

    private static void piece(String name, Piece p) {
        String text;
        try {
            text = p.run();
        } catch (Throwable e) {
            text = "failed: " + e;
        }
        synchronized (System.out) {
            System.out.println("outcome " + name + ": " + text.replace('\n', ' '));
        }
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    private static DefaultMQProducer producer(String name) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("workout-" + name);
        p.setNamesrvAddr(ns);
        p.setInstanceName("workout-" + name);
        p.setMqClientApiTimeout(30000); // first requests take long on a busy machine
        p.setSendMsgTimeout(PATIENCE * 1000);
        p.start();
        return p;
    }

    private static String produce() throws Exception {
        DefaultMQProducer p = producer("produce");
        routed(p);
        p.send(new Message(topic, "red", "key-sync", bytes("sync")));
        CountDownLatch done = new CountDownLatch(1);
        StringBuffer async = new StringBuffer();
        p.send(new Message(topic, "green", "key-async", bytes("async")), new SendCallback() {
            public void onSuccess(SendResult r) {
                async.append(r.getSendStatus());
                done.countDown();
            }

            public void onException(Throwable e) {
                async.append(e);
                done.countDown();
            }
        });
        done.await(PATIENCE, TimeUnit.SECONDS);
        p.sendOneway(new Message(topic, "oneway", bytes("oneway")));
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            batch.add(new Message(topic, "batch", "key-batch" + i, bytes("batch" + i)));
        }
        SendResult b = p.send(batch);
        Message big = new Message(topic, "big", bytes("b".repeat(9000)));
        big.putUserProperty("a", "7");
        SendResult z = p.send(big);
        p.shutdown();
        return async + " " + b.getSendStatus() + " ids " + b.getMsgId().split(",").length + " " + z.getSendStatus();
    }

    /** The first request of a JVM takes long on a busy machine; the client gives it three seconds. */
    private static void routed(DefaultMQProducer p) throws Exception {
        for (int i = 0; ; i++) {
            try {
                p.fetchPublishMessageQueues(topic);
                return;
            } catch (Exception e) {
                if (i == 20) {
                    throw e;
                }
            }
        }
    }

    private static DefaultMQPushConsumer consumer(String name) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer("workout-" + name + "-" + topic);
        c.setNamesrvAddr(ns);
        c.setInstanceName("workout-consumer-" + name);
        c.setMqClientApiTimeout(30000);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return c;
    }

    /** Consumes until n distinct bodies came; then a little longer for what must not come. */
    private static String collect(DefaultMQPushConsumer c, int n) throws Exception {
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        CountDownLatch enough = new CountDownLatch(n);
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            for (MessageExt m : ms) {
                String body = m.getBody().length > 100 ? m.getBody().length + " bytes" : new String(m.getBody(), StandardCharsets.UTF_8);
                if (body.equals("sync") && m.getReconsumeTimes() == 0 && c.getMessageModel() == MessageModel.CLUSTERING) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                if (seen.putIfAbsent(body, m.getReconsumeTimes()) == null) {
                    enough.countDown(); // one that comes twice counts once
                } else {
                    seen.merge(body, m.getReconsumeTimes(), Math::max);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            c.start();
        } catch (MQClientException e) {
            // The consumer runs all the same when the check of its expression was too slow; what it gets tells whether the broker can filter.
            if (!String.valueOf(e.getErrorMessage()).startsWith("Check client in broker error")) {
                throw e;
            }
        }
        boolean all = enough.await(PATIENCE, TimeUnit.SECONDS);
        c.shutdown();
        List<String> out = new ArrayList<>();
        seen.forEach((k, v) -> out.add(k + "/" + v));
        Collections.sort(out);
        return all + " " + out;
    }

    private static String push() throws Exception {
        DefaultMQPushConsumer c = consumer("push");
        c.setConsumeMessageBatchMaxSize(1);
        c.subscribe(topic, "*");
        return collect(c, 7);
    }

    private static String broadcast() throws Exception {
        DefaultMQPushConsumer c = consumer("broadcast");
        c.setMessageModel(MessageModel.BROADCASTING);
        c.subscribe(topic, "red || green");
        return collect(c, 2);
    }

    private static String sql() throws Exception {
        DefaultMQPushConsumer c = consumer("sql");
        c.subscribe(topic, MessageSelector.bySql("a > 5 and TAGS is not null"));
        return collect(c, 1);
    }

    private static String order() throws Exception {
        DefaultMQProducer p = producer("order");
        for (int i = 0; i < 6; i++) {
            p.send(new Message(topic + "order", "t", bytes("o" + i)), (qs, m, arg) -> qs.get((Integer) arg), i % 2);
        }
        DefaultMQPushConsumer c = consumer("order");
        c.setMaxReconsumeTimes(2);
        c.subscribe(topic + "order", "*");
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch enough = new CountDownLatch(6);
        AtomicInteger failures = new AtomicInteger();
        c.registerMessageListener((MessageListenerOrderly) (ms, context) -> {
            for (MessageExt m : ms) {
                String body = new String(m.getBody(), StandardCharsets.UTF_8);
                if (body.equals("o2") && failures.getAndIncrement() < 1) {
                    context.setSuspendCurrentQueueTimeMillis(100);
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                got.add(m.getQueueId() % 2 + body);
                enough.countDown();
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        c.start();
        boolean all = enough.await(PATIENCE, TimeUnit.SECONDS);
        c.shutdown();
        p.shutdown();
        List<String> even = new ArrayList<>(got), odd = new ArrayList<>(got);
        even.removeIf(s -> s.charAt(0) == '1');
        odd.removeIf(s -> s.charAt(0) == '0');
        return all + " " + even + " " + odd;
    }

    private static String transaction() throws Exception {
        TransactionMQProducer p = new TransactionMQProducer("workout-transaction-" + topic);
        p.setNamesrvAddr(ns);
        p.setInstanceName("workout-transaction");
        p.setMqClientApiTimeout(30000);
        p.setSendMsgTimeout(PATIENCE * 1000);
        AtomicInteger checks = new AtomicInteger();
        p.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                return (LocalTransactionState) arg;
            }

            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                // A broker may ask although it was told, when that is on its way.
                if (new String(m.getBody(), StandardCharsets.UTF_8).startsWith("ROLLBACK")) {
                    return LocalTransactionState.ROLLBACK_MESSAGE;
                }
                checks.incrementAndGet();
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        p.start();
        for (LocalTransactionState s : LocalTransactionState.values()) {
            p.sendMessageInTransaction(new Message(topic + "trans", "t", bytes(s.name())), s);
        }
        DefaultMQPushConsumer c = consumer("transaction");
        c.subscribe(topic + "trans", "*");
        String got = collect(c, 2);
        p.shutdown();
        return got + " checked " + (checks.get() > 0);
    }

    private static String time() throws Exception {
        DefaultMQProducer p = producer("time");
        Message level = new Message(topic + "time", "t", bytes("level"));
        level.setDelayTimeLevel(2);
        Message seconds = new Message(topic + "time", "t", bytes("seconds"));
        seconds.setDelayTimeSec(2);
        Message moment = new Message(topic + "time", "t", bytes("moment"));
        moment.setDeliverTimeMs(System.currentTimeMillis() + 2500);
        Message recalled = new Message(topic + "time", "t", bytes("recalled"));
        recalled.setDelayTimeSec(120); // not over before a slow machine has recalled it
        p.send(level);
        p.send(seconds);
        p.send(moment);
        SendResult r = p.send(recalled);
        String id = p.recallMessage(topic + "time", r.getRecallHandle());
        DefaultMQPushConsumer c = consumer("time");
        c.subscribe(topic + "time", "*");
        String got = collect(c, 3);
        p.shutdown();
        return got + " recalled " + id.equals(r.getMsgId());
    }

    private static String request() throws Exception {
        DefaultMQProducer p = producer("request"), replier = producer("replier");
        DefaultMQPushConsumer c = consumer("request");
        c.subscribe(topic + "req", "*");
        c.registerMessageListener((MessageListenerConcurrently) (ms, context) -> {
            for (MessageExt m : ms) {
                try {
                    replier.send(MessageUtil.createReplyMessage(m, bytes("re: " + new String(m.getBody(), StandardCharsets.UTF_8))));
                } catch (Exception e) {
                    System.out.println("replying: " + e);
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        // The blocking form of this client gives up as soon as the request is sent, and this one calls back then too, without a message.
        CompletableFuture<Message> answer = new CompletableFuture<>();
        p.request(new Message(topic + "req", "t", bytes("question")), new RequestCallback() {
            public void onSuccess(Message m) {
                if (m != null) {
                    answer.complete(m);
                }
            }

            public void onException(Throwable e) {
                answer.completeExceptionally(e);
            }
        }, PATIENCE * 1000);
        String text = new String(answer.get(PATIENCE, TimeUnit.SECONDS).getBody(), StandardCharsets.UTF_8);
        p.shutdown();
        replier.shutdown();
        c.shutdown();
        return text;
    }

    private static String litePull() throws Exception {
        DefaultLitePullConsumer c = new DefaultLitePullConsumer("workout-lite-" + topic);
        c.setNamesrvAddr(ns);
        c.setInstanceName("workout-lite");
        c.setMqClientApiTimeout(30000);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setAutoCommit(false);
        c.subscribe(topic, "*");
        c.start();
        int n = 0;
        for (long end = System.currentTimeMillis() + PATIENCE * 1000; n < 7 && System.currentTimeMillis() < end; ) {
            n += c.poll(1000).size();
        }
        c.commitSync();
        c.shutdown();
        return n + " messages";
    }

    /** Waits until the topic shows as many messages: a broker does a moment after it stored them. */
    @SuppressWarnings("deprecation")
    private static void shown(DefaultMQPullConsumer c, long n) throws Exception {
        for (long end = System.currentTimeMillis() + PATIENCE * 1000; System.currentTimeMillis() < end; Thread.sleep(50)) {
            long all = 0;
            for (MessageQueue q : c.fetchSubscribeMessageQueues(topic)) {
                all += c.maxOffset(q);
            }
            if (all >= n) {
                return;
            }
        }
    }

    @SuppressWarnings("deprecation")
    private static String pull() throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer("workout-pull-" + topic);
        c.setNamesrvAddr(ns);
        c.setInstanceName("workout-pull");
        c.setMqClientApiTimeout(30000);
        c.start();
        int n = 0;
        StringBuilder ends = new StringBuilder();
        shown(c, 7);
        for (MessageQueue q : c.fetchSubscribeMessageQueues(topic)) {
            long end = c.maxOffset(q);
            for (long at = c.minOffset(q); at < end; ) {
                var r = c.pull(q, "*", at, 32, 10000);
                if (r.getMsgFoundList() != null) {
                    n += r.getMsgFoundList().size();
                }
                at = r.getNextBeginOffset();
            }
            c.updateConsumeOffset(q, end);
            if (c.searchOffset(q, 0) != c.minOffset(q) || c.earliestMsgStoreTime(q) > System.currentTimeMillis()) {
                ends.append(" odd offsets of ").append(q);
            }
        }
        c.shutdown();
        return n + " messages" + ends;
    }
}
