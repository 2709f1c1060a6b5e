package broker

import (
	"strings"

	"github.com/streamd/streamd/internal/broker/stats"
	"github.com/streamd/streamd/internal/broker/store"
)

// maxStats bounds the topics and pairs of topic and group whose traffic is counted.
const maxStats = 20_000

// counters is what the broker counts of its traffic.
type counters struct {
	table                  *stats.Table
	puts, putBytes         *stats.Total
	refused                *stats.Total
	gets, getBytes         *stats.Total // messages that went to consumers
	pullsFound, pullsEmpty *stats.Total
	putTimes, getTimes     *stats.Times // of sends until they are stored; of reading for a pull
}

func newCounters() *counters {
	return &counters{
		table: stats.NewTable(maxStats), puts: stats.NewTotal(), putBytes: stats.NewTotal(), refused: stats.NewTotal(),
		gets: stats.NewTotal(), getBytes: stats.NewTotal(), pullsFound: stats.NewTotal(), pullsEmpty: stats.NewTotal(),
		putTimes: stats.NewTimes(), getTimes: stats.NewTimes(),
	}
}

// put counts messages that clients sent to a topic.
func (c *counters) put(cluster, topic string, messages, bytes int) {
	c.puts.Add(int64(messages))
	c.putBytes.Add(int64(bytes))
	c.table.Add(stats.TopicPutNums, topic, int64(messages), 1)
	c.table.Add(stats.TopicPutSize, topic, int64(bytes), 1)
	c.table.Add(stats.BrokerPutNums, cluster, int64(messages), 1)
}

// pulled counts what a pull brought.
func (c *counters) pulled(cluster string, q groupQueue, r store.Result) {
	if len(r.Messages) == 0 {
		c.pullsEmpty.Add(1)
		return
	}
	bytes := 0
	for _, m := range r.Messages {
		bytes += len(m)
	}
	n, of := int64(len(r.Messages)), statsKey(q.topic, q.group)
	c.pullsFound.Add(1)
	c.gets.Add(n)
	c.getBytes.Add(int64(bytes))
	c.table.Add(stats.GroupGetNums, of, n, 1)
	c.table.Add(stats.GroupGetSize, of, int64(bytes), 1)
	c.table.Add(stats.BrokerGetNums, cluster, n, 1)
}

func (c *counters) sentBack(topic, group string) {
	c.table.Add(stats.SendBackNums, statsKey(topic, group), 1, 1)
}

// statsKey is how RocketMQ joins a topic and a group.
func statsKey(topic, group string) string { return topic + "@" + group }

func (c *counters) forgetTopic(topic string) {
	c.table.Forget(func(of string) bool { return of == topic || strings.HasPrefix(of, topic+"@") })
}

func (c *counters) forgetGroup(group string) {
	c.table.Forget(func(of string) bool { return strings.HasSuffix(of, "@"+group) })
}
