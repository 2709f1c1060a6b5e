package rocketmq

import (
	"errors"
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Sentinels some caller branches on.
var (
	ErrTopicNotFound  = errors.New("topic not found")     // no name server knows it (17)
	ErrDuplicateGroup = errors.New("group joined twice")  // same group in one client
	ErrNoBroker       = errors.New("no broker serves it") // route known, no address

	// ErrNoNameServer means that no name server answered: nothing is known, as opposed to ErrTopicNotFound.
	ErrNoNameServer = errors.New("no name server answers")
	// ErrNoMembers is a broker's word that no member of the group is connected to it (38 with code 1). It is no member
	// list: the caller's own heartbeat may not have reached that broker yet.
	ErrNoMembers = errors.New("the broker knows no online member of the group")
	// ErrGroupNotFound is a broker's word that it does not know a group that this client has joined, and does not make it.
	ErrGroupNotFound = errors.New("consumer group not found")
	// ErrStaticTopic means that a topic's queues are mapped onto those of several brokers (static topics, 5.0).
	ErrStaticTopic = errors.New("static topic")
	// ErrMemberOffline is the brokers' word that a member is not connected to them (307).
	ErrMemberOffline = errors.New("member is not online")
	// ErrNotRunning means that the client was not started, or was closed.
	ErrNotRunning = errors.New("client is not running")
	// ErrNotJoined means that the group was not joined by this client.
	ErrNotJoined = errors.New("group is not joined")
	// ErrPullAgain means that a pull that was started has to be made by Pull.
	ErrPullAgain = errors.New("pull has to be made anew")
	// ErrInvalidMessage is a message that no broker may be asked to store.
	ErrInvalidMessage = errors.New("message cannot be sent")
	// ErrUnsupported means that the broker's version lacks what was asked for.
	ErrUnsupported = errors.New("not supported by the broker's version")
	// ErrProtocol is an answer that breaks the protocol.
	ErrProtocol = errors.New("broker broke the protocol")
)

// errPeerGone ends waiting for an address that is in no route any more.
var errPeerGone = errors.New("address left the routes")

// ResponseError is a broker's or name server's answer that is not a success.
type ResponseError struct {
	Request wire.RequestCode
	Code    wire.ResponseCode
	Remark  string // the server's words
	Broker  string // broker name; empty for a name server
	Addr    string
	Account string // the access key that this client signs with; empty = it does not
}

func (e *ResponseError) Error() string {
	who := "broker " + e.Broker
	if e.Broker == "" {
		who = "server"
	}
	text := fmt.Sprintf("%s (%s) answered %s with %s (%d)", who, e.Addr, e.Request, e.Code, int32(e.Code))
	if e.Remark != "" {
		text += ": " + e.Remark
	}
	if r, refused := e.Refusal(); refused {
		text += ": " + r.String()
	}
	return text
}

// UnreachableError is a broker or name server that no connection could be made to. The request was not sent.
type UnreachableError struct {
	Addr string
	Err  error // why the last attempt failed, or why waiting for the next ended
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s is not reachable: %v", e.Addr, e.Err)
}

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }
