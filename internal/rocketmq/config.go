package rocketmq

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	randv2 "math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Config says which cluster a client talks to and how. NameServers and Logger must be set; a zero value elsewhere means
// its default.
type Config struct {
	// NameServers as ParseNameServers reads them: addresses, or the one of a list that is asked for every ListInterval.
	NameServers []string
	Logger      *slog.Logger
	// ClientID names this client in its groups; two members of a group must not share it. Default: NewClientID.
	ClientID string
	// ProducerGroup is what sends say they come from, but for those to a retry topic.
	ProducerGroup string // CLIENT_INNER_PRODUCER

	Dial remoting.Dialer // plain TCP; TLS is a Dialer that wraps it
	// Sign may add header fields to each request (ACL) after all others are set.
	Sign func(*wire.Command) error
	// Account tells the access key that Sign signs with at the moment, for errors; "" = it does not sign. Nil = it never does.
	Account func() string
	// Namespace is put before the names of topics and groups on the wire, as NAMESPACE%NAME; names in this package's API are
	// without it (remoting-protocol.md 5.4). Empty = none.
	Namespace string
	// NamespaceV2 travels in header fields of its own, as Java's namespaceV2: names stay as they are. Excludes Namespace.
	NamespaceV2 string
	Now         func() time.Time // wall clock, for born times and ids; time.Now
	Rand        func() float64   // 0 <= x < 1, for jitter and choices; safe for concurrent use
	// Sent hears of each stored message that wants it (OutgoingMessage.Traced): for RocketMQ's own trace. It must not block.
	Sent func(*SentMessage)
	// ShortHeartbeats leaves the subscriptions out of heartbeats to brokers that say they know how (heartbeat V2, 5.1.3), as
	// Java's useHeartbeatV2 does; off by default as there.
	ShortHeartbeats bool

	// HTTP asks for a list of name servers; default: a client of its own, through the proxies of the environment.
	HTTP *http.Client

	ListInterval      time.Duration // 2 min, as Java's client
	RouteInterval     time.Duration // 30 s
	HeartbeatInterval time.Duration // 30 s
	// CallTimeout bounds each request within the caller's context; a pull is bounded by its hold time + PullMargin.
	CallTimeout time.Duration // 3 s
	// PullMargin is added to a pull's hold time: brokers look at held pulls every 5 s, and the answer has to travel.
	PullMargin  time.Duration // 10 s
	SendRetries int           // 2: attempts after the first; negative = none
	BackoffMin  time.Duration // 100 ms between connection attempts, doubled up to BackoffMax, with jitter
	BackoffMax  time.Duration // 2 s; 1 s while connections are refused
	// CompressAbove is the body size from which single messages are compressed; negative = never.
	CompressAbove  int // 4096
	MaxOutstanding int // requests on one connection without an answer yet, pulls not counted; 4096
}

// masterID is the broker id of a master; replicas have higher ones.
const masterID = 0

// maxMessageSize is RocketMQ's default limit of a body, and of a batch (remoting-protocol.md 4.5).
const maxMessageSize = 4 << 20

func (c Config) withDefaults() (Config, error) {
	if c.Logger == nil {
		return c, errors.New("client needs a logger")
	}
	addrs, err := ParseNameServers(c.NameServers...)
	if err != nil {
		return c, err
	}
	c.NameServers = addrs
	if c.ClientID == "" {
		if c.ClientID, err = NewClientID(); err != nil {
			return c, err
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = randv2.Float64
	}
	preset(&c.ProducerGroup, "CLIENT_INNER_PRODUCER")
	if c.HTTP == nil {
		c.HTTP = newListClient()
	}
	preset(&c.ListInterval, 2*time.Minute)
	preset(&c.RouteInterval, 30*time.Second)
	preset(&c.HeartbeatInterval, 30*time.Second)
	preset(&c.CallTimeout, 3*time.Second)
	preset(&c.PullMargin, 10*time.Second)
	preset(&c.SendRetries, 2)
	preset(&c.BackoffMin, 100*time.Millisecond)
	preset(&c.BackoffMax, 2*time.Second)
	preset(&c.CompressAbove, 4096)
	if c.CompressAbove < 0 {
		c.CompressAbove = math.MaxInt
	}
	c.SendRetries = max(c.SendRetries, 0)
	if c.PullMargin <= holdTick {
		return c, fmt.Errorf("pull margin %s is too short: brokers answer held pulls up to %s late; give more", c.PullMargin, holdTick)
	}
	return c, nil
}

// holdTick is how long after its hold time a broker may look at a held pull (remoting-protocol.md 2.5).
const holdTick = 5 * time.Second

func preset[T comparable](v *T, preset T) {
	var zero T
	if *v == zero {
		*v = preset
	}
}

// NewClientID returns ip@pid#random: what RocketMQ's tools expect, unique also where containers share ip and pid.
func NewClientID() (string, error) {
	var unique [8]byte
	if _, err := rand.Read(unique[:]); err != nil {
		return "", fmt.Errorf("making a client id: %w", err)
	}
	return fmt.Sprintf("%s@%d#%s", localIP(), os.Getpid(), hex.EncodeToString(unique[:])), nil
}

// localIP is the first address that is not a loopback, IPv4 preferred, as Java chooses it; 127.0.0.1 when there is none.
func localIP() net.IP {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return net.IPv4(127, 0, 0, 1)
	}
	var v6 net.IP
	for _, a := range addrs {
		ipNet, ok := a.(*net.IPNet)
		if !ok || ipNet.IP.IsLoopback() || ipNet.IP.IsLinkLocalUnicast() {
			continue
		}
		if ipNet.IP.To4() != nil {
			return ipNet.IP
		}
		if v6 == nil {
			v6 = ipNet.IP
		}
	}
	if v6 != nil {
		return v6
	}
	return net.IPv4(127, 0, 0, 1)
}
