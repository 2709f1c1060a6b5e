package broker

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Config says what a broker is. The zero value is a broker named broker-a on a free port of the loopback.
type Config struct {
	Name    string // "broker-a"
	Cluster string // "DefaultCluster"
	Region  string // "DefaultRegion"; stored with each message
	// Address is where to listen, "127.0.0.1:0" by default.
	Address string
	// Listen opens the listener, TCP by default; (*memnet.Network).Listen puts the broker into memory. It is called at
	// each Start.
	Listen func(address string) (net.Listener, error)
	// Advertise is the address that routes and message ids name; by default the one listened on.
	Advertise string
	// NameServer knows the broker's topics, and those of other brokers that were given the same one. By default the broker
	// has one of its own. Either way its listener answers the name server's codes too.
	NameServer *NameServer
	// Version is what the broker says it is, 5.3.3 by default.
	Version wire.Version
	Logger  *slog.Logger // by default nothing is logged
	// Access decides whether a request from an address is allowed, and if not why; nil allows all. It runs on the reading
	// goroutine of the connection and must not block. Package acl makes one.
	Access func(from netip.Addr, cmd *wire.Command) (remark string, allowed bool)
	// TLS, when set, is what every client must speak. Its GetCertificate or Certificates must be set.
	TLS *tls.Config

	// DelayLevels are the delays of levels 1, 2, …; RocketMQ's 18 by default. A test may shorten them.
	DelayLevels []time.Duration
	// MaxRetries is the limit of new groups, 16 by default.
	MaxRetries int32
	// DefaultQueues is the queue count of the template of topics that are made by a first send, 8 by default. A client asks
	// for 4 of them.
	DefaultQueues int32
	// NoTopicCreation refuses sends to unknown topics (autoCreateTopicEnable=false).
	NoTopicCreation bool
	// NoGroupCreation refuses unknown groups (autoCreateSubscriptionGroup=false).
	NoGroupCreation bool
	// PushResets makes 222 push 220 to the members, as before 5.1, instead of answering pulls with 21
	// (useServerSideResetOffset=false).
	PushResets bool

	// DataDir is the folder in which everything is kept that must outlive the process: messages, topics, groups, offsets, what
	// waits for its time, open transactions, key-value configs. It is made if need be, and held against other processes.
	// "" = in memory, for as long as the Broker is not garbage.
	DataDir string
	// Files is where DataDir is, the operating system's by default. A test may let it fail.
	Files vfs.FS
	// Flush says when a message counts as stored: when the disk has it (store.FlushSync, the default), or when the operating
	// system has it, so that a power loss takes what was answered in the last FlushInterval (store.FlushAsync).
	Flush         store.Flush
	FlushInterval time.Duration // 500 ms
	// CacheBytes is how much memory caches what was read from DataDir, 64 MiB by default.
	CacheBytes int64
	// MinFree is how much of the disk stays free: with less, messages are refused. 256 MiB by default, and at most an eighth
	// of the disk.
	MinFree int64
	// RetainAge and RetainBytes expire messages that are older, and the oldest ones when all together have more bytes, read or
	// not; 0 = none. What waits for its time is kept.
	RetainAge   time.Duration
	RetainBytes int64

	PullMessages int           // limit of one pull, 32
	PullBytes    int           // limit of one pull, 256 KiB
	MemberTTL    time.Duration // a member without heartbeat is dropped, 120 s
	LockTTL      time.Duration // a queue lock without renewal is free, 60 s
	CallTimeout  time.Duration // how long 307 and 309 wait for the member, 10 s
	IdleTimeout  time.Duration // a silent connection is closed, 120 s
	// TransactionTimeout is when a producer is first asked how its transaction ended, 6 s; TransactionInterval when again, 30 s.
	TransactionTimeout, TransactionInterval time.Duration

	MaxBody int // longest message body, 4 MiB
}

func (c Config) withDefaults() Config {
	or(&c.Name, "broker-a")
	or(&c.Cluster, "DefaultCluster")
	or(&c.Region, "DefaultRegion")
	or(&c.Address, "127.0.0.1:0")
	or(&c.Version, wire.Version5_3_3)
	or(&c.MaxRetries, 16)
	or(&c.DefaultQueues, 8)
	or(&c.PullMessages, 32)
	or(&c.PullBytes, 256<<10)
	or(&c.MemberTTL, 120*time.Second)
	or(&c.LockTTL, 60*time.Second)
	or(&c.CallTimeout, 10*time.Second)
	or(&c.IdleTimeout, 120*time.Second)
	or(&c.TransactionTimeout, 6*time.Second)
	or(&c.TransactionInterval, 30*time.Second)
	or(&c.MaxBody, 4<<20)
	if c.Listen == nil {
		c.Listen = listenTCP
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.DelayLevels == nil {
		c.DelayLevels = DefaultDelayLevels()
	}
	return c
}

func or[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

// DefaultDelayLevels returns RocketMQ's delays of the levels 1 to 18 (messageDelayLevel; consumer-semantics.md 8.3).
func DefaultDelayLevels() []time.Duration {
	const s, m, h = time.Second, time.Minute, time.Hour
	return []time.Duration{
		s, 5 * s, 10 * s, 30 * s, m, 2 * m, 3 * m, 4 * m, 5 * m,
		6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, h, 2 * h,
	}
}

func listenTCP(address string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(context.Background(), "tcp", address)
}

// resolveTimeout bounds the look-up of an advertised name.
const resolveTimeout = 5 * time.Second

// hostOf finds the address that messages carry as their store host, which is numeric: an advertised name is looked up once,
// and IPv4 is preferred, as RocketMQ's tools do.
func hostOf(advertise string) (netip.AddrPort, error) {
	host, portText, err := net.SplitHostPort(advertise)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("advertising %q: %w; write host:port", advertise, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("advertising %q: the port is no number", advertise)
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("advertising %q, which clients will be told to connect to: %w", advertise, err)
	}
	slices.SortStableFunc(found, func(a, b netip.Addr) int { return a.Unmap().BitLen() - b.Unmap().BitLen() })
	if found[0].Unmap().IsUnspecified() {
		return netip.AddrPort{}, fmt.Errorf("advertising %q: that is every address of this machine, and clients must be told one; give one as Advertise", advertise)
	}
	return netip.AddrPortFrom(found[0].Unmap(), uint16(port)), nil
}
