package broker

import (
	"fmt"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/broker/stats"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onRuntimeInfo is 28: what tools show of a broker. It has every name that mqadmin and dashboards read; the queues of
// thread pools, which are not here, are empty.
func (b *Broker) onRuntimeInfo(*remote.Request) *remote.Answer {
	table := make(map[string]string, 64)
	b.infoOfBroker(table)
	b.infoOfTraffic(table)
	b.infoOfStore(table)
	for _, pool := range []string{"send", "pull", "litePull", "query", "ack"} {
		table[pool+"ThreadPoolQueueSize"] = "0"
		table[pool+"ThreadPoolQueueHeadWaitTimeMills"] = "0"
		table[pool+"ThreadPoolQueueCapacity"] = "0"
	}
	table["EndTransactionQueueSize"], table["EndTransactionThreadPoolQueueCapacity"] = "0", "0"
	return jsonBody(wire.KVTable{Table: table}, wire.Standard)
}

func (b *Broker) infoOfBroker(table map[string]string) {
	up := time.Since(b.started()).Truncate(time.Second)
	days := int(up.Hours()) / 24
	table["brokerVersion"] = strconv.Itoa(int(b.config.Version))
	table["brokerVersionDesc"] = b.config.Version.String()
	table["brokerActive"] = "true"
	table["bootTimestamp"] = millis(b.started().UnixMilli())
	table["startAcceptSendRequestTimeStamp"] = "0"
	table["runtime"] = fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]",
		days, int(up.Hours())%24, int(up.Minutes())%60, int(up.Seconds())%60)
}

func (b *Broker) infoOfTraffic(table map[string]string) {
	c := b.counters
	puts, bytes := c.puts.Value(), c.putBytes.Value()
	table["putTps"] = rates(c.puts)
	table["getTransferredTps"] = rates(c.gets)
	table["getFoundTps"] = rates(c.pullsFound)
	table["getMissTps"] = rates(c.pullsEmpty)
	found, empty := c.pullsFound.Rates(), c.pullsEmpty.Rates()
	table["getTotalTps"] = rateText([3]float64{found[0] + empty[0], found[1] + empty[1], found[2] + empty[2]})
	table["putMessageTimesTotal"] = millis(puts)
	table["putMessageSizeTotal"] = millis(bytes)
	table["putMessageAverageSize"] = strconv.FormatFloat(float64(bytes)/float64(max(puts, 1)), 'f', 1, 64)
	table["putMessageFailedTimes"] = millis(c.refused.Value())
	table["putMessageEntireTimeMax"] = millis(c.putTimes.Most())
	table["putMessageDistributeTime"] = c.putTimes.Distribution()
	table["putLatency99"] = strconv.FormatFloat(c.putTimes.Percentile(0.99), 'f', 2, 64)
	table["putLatency999"] = strconv.FormatFloat(c.putTimes.Percentile(0.999), 'f', 2, 64)
	table["getMessageEntireTimeMax"] = millis(c.getTimes.Most())
	for _, t := range []struct {
		name  string
		total *stats.Total
	}{{"msgPutTotal", c.puts}, {"msgGetTotal", c.gets}} {
		today, yesterday := t.total.Mornings()
		table[t.name+"TodayNow"] = millis(t.total.Value())
		table[t.name+"TodayMorning"] = millis(today)
		table[t.name+"YesterdayMorning"] = millis(yesterday)
	}
}

func (b *Broker) infoOfStore(table map[string]string) {
	first, next := b.storage.Log()
	table["commitLogMinOffset"], table["commitLogMaxOffset"] = millis(first), millis(next)
	table["earliestMessageTimeStamp"] = millis(b.earliest())
	for _, name := range []string{"dispatchBehindBytes", "dispatchMaxBuffer", "pageCacheLockTimeMills", "timerOffsetBehind", "timerReadBehind"} {
		table[name] = "0"
	}
	table["timerCongestNum"] = strconv.Itoa(b.storage.waiting())
	table["timerEnqueueTps"], table["timerDequeueTps"] = "0.0", "0.0"
	ratio, capacity := b.disk()
	table["commitLogDiskRatio"], table["consumeQueueDiskRatio"] = ratio, ratio
	table["commitLogDirCapacity"] = capacity
	table["remainHowManyDataToFlush"] = "0 B"
}

// disk is how full the disk is, as a share of 1 and in words. Messages in memory fill none.
func (b *Broker) disk() (ratio, capacity string) {
	usage, err := b.storage.usage()
	if err != nil || usage.TotalBytes == 0 {
		return "0.0", "Total : 0 B, Free : 0 B."
	}
	const gib = 1 << 30
	share := 1 - float64(usage.AvailBytes)/float64(usage.TotalBytes)
	return strconv.FormatFloat(share, 'f', 2, 64),
		fmt.Sprintf("Total : %.1f GiB, Free : %.1f GiB.", float64(usage.TotalBytes)/gib, float64(usage.AvailBytes)/gib)
}

// usage is the state of the disk that has the data folder.
func (s *storage) usage() (vfs.DiskUsage, error) {
	files := s.options.FS
	or(&files, vfs.Default)
	return files.GetDiskUsage(s.options.Dir)
}

// earliest is when the oldest message that is still there was stored, −1 when there is none. Messages are stored one behind
// the other, so it is the first of the log, but for one whose topic was deleted.
func (b *Broker) earliest() int64 {
	first, next := b.storage.Log()
	if first >= next {
		return -1
	}
	if m, ok := b.lookup(first); ok {
		return m.StoreMillis
	}
	return b.earliestOfQueues()
}

func (b *Broker) earliestOfQueues() int64 {
	oldest := int64(-1)
	for _, topic := range b.topics.names() {
		for queue := range int32(b.storage.Queues(topic)) {
			first, _, _ := b.storage.Bounds(topic, queue)
			if at, ok := b.storage.StoreMillis(topic, queue, first); ok && (oldest < 0 || at < oldest) {
				oldest = at
			}
		}
	}
	return oldest
}

func millis(n int64) string { return strconv.FormatInt(n, 10) }

func rates(t *stats.Total) string { return rateText(t.Rates()) }

// rateText is three rates as tools split them: by blanks.
func rateText(r [3]float64) string { return fmt.Sprintf("%g %g %g", r[0], r[1], r[2]) }
