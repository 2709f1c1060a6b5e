package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/test/interop/cluster"
)

// command is one of mqadmin, with words that its output must have.
type command struct {
	name  string // the line, with what differs from broker to broker in braces
	line  string // words with blanks between
	words []string
}

// otherwise are the commands whose outcome is another on the embedded broker, and why that is meant.
func otherwise() map[string]string {
	const byGroups = "5.3.3 lists a topic among its own groups (300), so the tool asks for a group that is not there and fails"
	return map[string]string{
		"mqadmin queryMsgById -t Work -i {id}":                   byGroups,
		"mqadmin queryMsgByUniqueKey -t Work -i {key}":           byGroups,
		"mqadmin queryMsgByOffset -t Work -b broker-a -i 0 -o 0": byGroups,
		"mqadmin queryMsgTraceById -i {key}":                     "the trace topic is there, so the tool finds no trace (208) instead of no topic (17)",
	}
}

// commandsOf are the commands of mqadmin 5.3.3 that a broker and a name server answer. Left out are those for a controller,
// a broker container, a proxy's or a RocksDB store's files, and two that never end (startMonitoring, clusterRT).
func commandsOf(ns, broker, offsetID, uniqueKey string) []command {
	on := func(format string, words ...string) command {
		return command{format, strings.NewReplacer("{n}", ns, "{b}", broker, "{id}", offsetID, "{key}", uniqueKey).Replace(format), words}
	}
	group := "workout-push-Work"
	return slices.Concat(
		[]command{
			on("clusterList", "DefaultCluster", "broker-a"),
			on("clusterList -m", "DefaultCluster"),
			on("topicList", "Work"),
			on("topicList -c", "Work", "DefaultCluster"),
			on("topicRoute -t Work", "broker-a", `"perm":6`),
			on("topicRoute -t Work -l", "broker-a"),
			on("topicStatus -t Work", "broker-a"),
			on("topicClusterList -t Work", "DefaultCluster"),
			on("topicStatus -t Absent"),
			on("updateTopic -c DefaultCluster -t Made -r 3 -w 3", "success"),
			on("updateTopic -b {b} -t Made2 -r 1 -w 1 -o true", "success"),
			on("updateTopic -c DefaultCluster -t Made3 -a +message.type=FIFO", "success"),
			on("updateTopic -c DefaultCluster -t bad.name -r 3 -w 3"),
			on("updateTopicPerm -c DefaultCluster -t Made -p 4", "success"),
			on("updateOrderConf -t Made -m put -v broker-a:3", "success"),
			on("updateOrderConf -t Made -m get", "broker-a:3"),
			on("updateOrderConf -t Made -m delete", "success"),
			on("updateKvConfig -s space -k key -v value", "success"),
			on("deleteKvConfig -s space -k key", "success"),
			on("updateSubGroup -c DefaultCluster -g made -r 3 -s true", "success"),
			on("updateSubGroup -b {b} -g made2", "success"),
			on("getConsumerConfig -g made", "made"),
			on("setConsumeMode -c DefaultCluster -t Work -g made -m PULL -q 0", "success"),
			on("deleteSubGroup -c DefaultCluster -g made2 -r true", "success"),
		},
		[]command{
			on("consumerProgress", "workout-push-Work"),
			on("consumerProgress -g "+group, "Work", "broker-a", "Consume TPS", "Diff Total"),
			on("consumerProgress -g "+group+" -t Work", "Work"),
			on("consumerProgress -g absent"),
			on("consumerConnection -g here", "CONSUME_PASSIVELY", "Here", "CLUSTERING", "JAVA"),
			on("consumerConnection -g absent"),
			on("consumerStatus -g here", "consume", "ConsumerRunningInfoFile"),
			on("consumerStatus -g here -s", "consume"),
			on("producerConnection -g absent -t Work"),
			on("producer -b {b}", "producer group"),
			on("brokerStatus -b {b}", "brokerVersionDesc", "bootTimestamp", "putTps"),
			on("brokerStatus -c DefaultCluster", "brokerVersionDesc"),
			on("brokerConsumeStats -b {b}", "Work"),
			on("statsAll", "Work"),
			on("statsAll -t Work", "Work"),
			on("statsAll -a -t Work"),
			on("getBrokerConfig -b {b}", "brokerName", "messageDelayLevel"),
			on("getBrokerConfig -c DefaultCluster", "broker-a"),
			on("getNamesrvConfig", "orderMessageEnable"),
			on("updateBrokerConfig -b {b} -k maxMessageSize -v 4194304", "success"),
			on("updateNamesrvConfig -k orderMessageEnable -v false", "success"),
			on("haStatus -b {b}"),
			on("wipeWritePerm -b broker-a", "wipe write perm"),
			on("addWritePerm -b broker-a", "add write perm"),
			on("allocateMQ -t Work -i 127.0.0.1", "broker-a"),
		},
		[]command{
			on("queryMsgById -t Work -i {id}", "{id}", "Work"),
			on("queryMsgById -t Work -i 0000"),
			on("queryMsgByKey -t Work -k key-sync", "#Message ID"),
			on("queryMsgByKey -t Work -k absent"),
			on("queryMsgByUniqueKey -t Work -i {key}", "{key}", "Work"),
			on("queryMsgByUniqueKey -t Work -i absent"),
			on("queryMsgByOffset -t Work -b broker-a -i 0 -o 0", "Work"),
			on("queryCq -t Work -q 0 -i 0 -c 3 -b {b}"),
			on("queryMsgTraceById -i {key}"),
			on("printMsg -t Work -b 2020-01-01#00:00:00:000 -d true", "MSGID"),
			on("printMsgByQueue -t Work -a broker-a -i 0 -p true -d true", "MSGID"),
			on("consumeMessage -t Work -g made -c 1", "Work"),
			on("consumeMessage -t Work -b broker-a -i 0 -o 0 -c 1 -g made"),
			on("sendMessage -t Made2 -p body -k k -c t", "SEND_OK"),
			on("sendMessage -t Made2 -p body -b broker-a -i 0", "SEND_OK"),
			on("sendMsgStatus -b broker-a -s 10 -c 1", "rt"),
			on("checkMsgSendRT -t Made2 -a 2 -s 10", "Avg RT"),
			on("cloneGroupOffset -s "+group+" -d made -t Work", "success"),
			on("resetOffsetByTime -g "+group+" -t Work -s 0", "broker-a"),
			on("resetOffsetByTime -g "+group+" -t Work -s now -f true", "broker-a"),
			on("resetOffsetByTime -g " + group + " -t Work -b {b} -q 0 -s 0 -o 1"),
			on("resetOffsetByTime -g absent -t Absent -s 0"),
			on("skipAccumulatedMessage -g "+group+" -t Work", "broker-a"),
			on("updateTopicList -c DefaultCluster -f topics.json", "success"),
			on("updateSubGroupList -c DefaultCluster -f groups.json", "success"),
			on("cleanExpiredCQ -b {b}", "success"),
			on("deleteExpiredCommitLog -b {b}", "success"),
			on("cleanUnusedTopic -b {b}", "success"),
			on("exportConfigs -c DefaultCluster -f exported", "success"),
			on("exportMetadata -c DefaultCluster -f exported"),
			on("exportMetrics -c DefaultCluster -f exported", "success"),
			on("getColdDataFlowCtrInfo -b {b}"),
			on("deleteTopic -c DefaultCluster -t Made", "success"),
			on("deleteTopic -c DefaultCluster -t Made3", "success"),
			on("topicRoute -t Made"),
		},
	)
}

// commands runs mqadmin's commands while one Java consumer is there to be asked.
func (s *site) commands(t *testing.T, ctx context.Context, admin *cluster.Admin) { //nolint:revive // a test's helper takes the test first
	if err := admin.CreateTopic(ctx, "Here", 1); err != nil {
		t.Error(err)
		return
	}
	here, err := s.tools.JavaReady(ctx, "Consume", s.nameServer, "here", "Here", "*")
	if err != nil {
		t.Error(err)
		return
	}
	defer here.Kill()
	message, err := s.someMessage(ctx, t)
	if err != nil {
		t.Error(err)
		return
	}
	for file, text := range map[string]string{
		"topics.json": `[{"topicName":"Listed","readQueueNums":2,"writeQueueNums":2,"perm":6}]`, "groups.json": `[{"groupName":"listed"}]`,
	} {
		if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600); err != nil {
			t.Error(err)
			return
		}
	}
	for _, c := range commandsOf(s.nameServer, s.broker, message.OffsetMessageID, message.MessageID) {
		start := time.Now()
		out, err := admin.Run(ctx, strings.Fields(c.line)...)
		if err != nil {
			t.Errorf("%s on the %s broker: %v", c.line, s.name, err)
			return
		}
		outcome := s.outcome(out, c.words, message)
		t.Logf("%s: mqadmin %s: %s, after %s", s.name, c.line, outcome, time.Since(start).Round(time.Millisecond))
		s.came("mqadmin "+c.name, outcome)
	}
}

// someMessage stores a message and waits until it can be found.
func (s *site) someMessage(ctx context.Context, t *testing.T) (rocketmq.SendResult, error) {
	t.Helper()
	c := newClient(t, s.nameServer) //nolint:contextcheck // it is closed when the test's context is over
	r, err := c.Send(ctx, &rocketmq.OutgoingMessage{Topic: "Work", Body: []byte("found"), Keys: []string{"key-found"}, Tag: "found"})
	if err != nil {
		return r, fmt.Errorf("storing a message for the tools: %w", err)
	}
	return r, nil
}

// outcome says whether a command worked: which of the words it is to print are missing, or which code it failed with.
func (s *site) outcome(out string, words []string, m rocketmq.SendResult) string {
	var missing []string
	for _, w := range words {
		if !strings.Contains(out, strings.NewReplacer("{id}", m.OffsetMessageID, "{key}", m.MessageID).Replace(w)) {
			missing = append(missing, w)
		}
	}
	text := "worked"
	if strings.Contains(out, "Exception") {
		text = "failed"
		if code := regexp.MustCompile(`CODE: (\d+)`).FindStringSubmatch(out); code != nil {
			text += " with " + code[1]
		}
	}
	if len(missing) > 0 {
		text += fmt.Sprintf(", without %q: %s", missing, ending(out))
	}
	return text
}

// ending is the end of an output, on one line.
func ending(out string) string {
	flat := strings.Join(strings.Fields(out), " ")
	return flat[max(0, len(flat)-300):]
}
