package broker

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// tuned is the settings that 25 changes while the broker runs.
type tuned struct {
	version      atomic.Int64
	permission   atomic.Int32 // of the whole broker, as that of a topic
	pushResets   atomic.Bool
	pullMessages atomic.Int64
	pullBytes    atomic.Int64
	maxBody      atomic.Int64
}

func newTuned(c Config) *tuned {
	t := new(tuned)
	t.permission.Store(permUsual)
	t.pushResets.Store(c.PushResets)
	t.pullMessages.Store(int64(c.PullMessages))
	t.pullBytes.Store(int64(c.PullBytes))
	t.maxBody.Store(int64(c.MaxBody))
	return t
}

// setting is one line of a broker's config.
type setting struct {
	name, value string
	change      func(value string) (apply func(), err error) // nil: not while the broker runs
}

// settingAutoTopics is a permission of the template of topics.
const settingAutoTopics = "autoCreateTopicEnable"

// The most that may be asked of one pull and of one message.
const (
	maxPullMessages = 10_000
	maxPullBytes    = maxFrame / 2
	maxBodyLimit    = maxFrame / 2
)

// hostPort splits an address; what is none has no port.
func hostPort(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address, ""
	}
	return host, port
}

// settings returns the settings by RocketMQ's names.
func (b *Broker) settings() []setting {
	c, fixed := b.config, func(name, value string) setting { return setting{name: name, value: value} }
	host, port := hostPort(b.Address())
	return []setting{
		b.autoTopics(), b.autoGroups(),
		fixed("brokerClusterName", c.Cluster), fixed("brokerIP1", host), fixed("brokerId", "0"), fixed("brokerName", c.Name),
		number32("brokerPermission", &b.tuned.permission, int64(permUsual)),
		fixed("brokerRole", "ASYNC_MASTER"),
		fixed("defaultTopicQueueNums", strconv.Itoa(int(c.DefaultQueues))),
		fixed("enablePropertyFilter", "true"), fixed("fileReservedTime", strconv.Itoa(int(c.RetainAge.Hours()))),
		fixed("flushDiskType", strings.ToUpper(c.Flush.String())+"_FLUSH"), fixed("listenPort", port), fixed("longPollingEnable", "true"),
		number64("maxMessageSize", &b.tuned.maxBody, maxBodyLimit),
		number64("maxTransferBytesOnMessageInMemory", &b.tuned.pullBytes, maxPullBytes),
		number64("maxTransferCountOnMessageInMemory", &b.tuned.pullMessages, maxPullMessages),
		fixed("messageDelayLevel", delayText(c)), fixed("recallMessageEnable", "true"), fixed("regionId", c.Region),
		fixed("rejectTransactionMessage", "false"), fixed("slaveReadEnable", "false"), fixed("timerMaxDelaySec", strconv.Itoa(int(maxTimerDelay.Seconds()))),
		fixed("timerPrecisionMs", strconv.Itoa(timerTick)), fixed("timerWheelEnable", "true"), fixed("traceTopicEnable", "true"),
		fixed("transactionCheckInterval", millis(c.TransactionInterval.Milliseconds())), fixed("transactionCheckMax", strconv.Itoa(maxChecks)),
		fixed("transactionTimeOut", millis(c.TransactionTimeout.Milliseconds())),
		b.serverSideReset(),
	}
}

// settingValues are the present values by RocketMQ's names.
func (b *Broker) settingValues() map[string]string {
	values := make(map[string]string)
	for _, s := range b.settings() {
		values[s.name] = s.value
	}
	return values
}

// saveSettings stores what was changed by request, as RocketMQ writes it into its broker.conf: it counts at the next start too,
// whatever the config says, until it is set back to what the config says. What is part of a topic is stored with that.
func (b *Broker) saveSettings(names []string) {
	values, save := b.settingValues(), b.saver(tableSettings)
	for _, name := range names {
		switch {
		case name == settingAutoTopics:
		case values[name] == b.configured[name]:
			save(name, nil)
		default:
			save(name, []byte(values[name]))
		}
	}
}

// loadSettings takes over the settings that the store has.
func (b *Broker) loadSettings(stored map[string][]byte) error {
	for _, s := range b.settings() {
		value, changed := b.configured[s.name], false
		if text, ok := stored[s.name]; ok {
			value, changed = string(text), true
		}
		if s.change == nil || s.name == settingAutoTopics || value == s.value {
			continue
		}
		apply, err := s.change(value)
		if err != nil {
			return fmt.Errorf("the setting %s: %w", s.name, err)
		}
		apply()
		if changed {
			b.config.Logger.Info("a setting that was changed by request counts, not the config's", "setting", s.name, "value", value, "config", b.configured[s.name])
		}
	}
	return nil
}

func delayText(c Config) string {
	texts := make([]string, 0, len(c.DelayLevels))
	for _, d := range c.DelayLevels {
		texts = append(texts, strconv.FormatFloat(d.Seconds(), 'f', -1, 64)+"s")
	}
	return strings.Join(texts, " ")
}

func boolSetting(name string, value bool, set func(bool)) setting {
	return setting{name, strconv.FormatBool(value), func(text string) (func(), error) {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return func() { set(v) }, nil
	}}
}

func (b *Broker) autoTopics() setting {
	template, _ := b.topics.get(wire.DefaultTopic)
	return boolSetting(settingAutoTopics, template.Perm&wire.PermInherit != 0, func(on bool) {
		template.Perm &^= wire.PermInherit
		if on {
			template.Perm |= wire.PermInherit
		}
		b.topics.put(template)
	})
}

func (b *Broker) autoGroups() setting {
	return boolSetting("autoCreateSubscriptionGroup", b.groups.creates(), b.groups.setCreate)
}

func (b *Broker) serverSideReset() setting {
	return boolSetting("useServerSideResetOffset", !b.tuned.pushResets.Load(), func(on bool) { b.tuned.pushResets.Store(!on) })
}

func number64(name string, at *atomic.Int64, most int64) setting {
	return setting{name, millis(at.Load()), func(text string) (func(), error) {
		n, err := parseWithin(text, 1, most)
		return func() { at.Store(n) }, err
	}}
}

func number32(name string, at *atomic.Int32, most int64) setting {
	return setting{name, millis(int64(at.Load())), func(text string) (func(), error) {
		n, err := parseWithin(text, 0, min(most, math.MaxInt32))
		return func() { at.Store(int32(n)) }, err
	}}
}

func parseWithin(text string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is no number from %d to %d", text, least, most)
	}
	return n, nil
}
