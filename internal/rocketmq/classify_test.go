package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestClassify(t *testing.T) {
	code := func(c wire.ResponseCode) error {
		return fmt.Errorf("doing something: %w", &ResponseError{Request: wire.ReqPullMessage, Code: c})
	}
	sent := func(err error) error { return &remoting.CallError{Sent: true, Err: err} }
	unsent := func(err error) error { return &remoting.CallError{Err: err} }
	tests := []struct {
		name                               string
		err                                error
		retriable, elsewhere, stale, fatal bool
	}{
		{"nothing", nil, false, false, false, false},
		{"success", code(wire.RespSuccess), false, false, false, false},
		{"any exception", code(wire.RespSystemError), true, true, false, false},
		{"flow control", code(wire.RespSystemBusy), true, true, false, false},
		{"unit without buyer", code(wire.RespNoBuyerID), true, true, false, false},
		{"other unit", code(wire.RespNotInCurrentUnit), true, true, false, false},
		{"shutting down", code(wire.RespServiceNotAvailable), true, true, true, false},
		{"topic not there", code(wire.RespTopicNotExist), true, true, true, false},
		{"leaving", code(wire.RespGoAway), true, true, true, false},
		{"fewer queues than believed", code(wire.RespInvalidParameter), true, false, true, false},
		{"static topic moved", code(wire.RespNotLeaderForQueue), true, false, true, false},
		{"permission", code(wire.RespNoPermission), false, true, true, true},
		{"unknown request", code(wire.RespNotSupported), false, false, false, true},
		{"version", code(wire.RespVersionNotSupported), false, false, false, true},
		{"message refused", code(wire.RespMessageIllegal), false, false, false, true},
		{"expression refused", code(wire.RespSubscriptionParseFailed), false, false, false, true},
		{"broadcasting", code(wire.RespBroadcastConsumption), false, false, false, true},
		{"illegal", code(wire.RespIllegalOperation), false, false, false, true},
		{"topic there already", code(wire.RespTopicExists), false, false, false, true},
		{"no user", code(wire.RespUserNotExist), false, false, false, true},
		{"no policy", code(wire.RespPolicyNotExist), false, false, false, true},
		{"subscription not there yet", code(wire.RespSubscriptionNotExist), true, false, false, false},
		{"subscription older", code(wire.RespSubscriptionNotLatest), true, false, false, false},
		{"group not there yet", code(wire.RespGroupNotExist), true, false, false, false},
		{"proxy's flow control", code(wire.RespFlowControl), true, false, false, false},
		{"a code nobody knows", code(31337), true, false, false, false},
		{"caller gave up", context.Canceled, false, false, false, false},
		{"caller gave up in a call", sent(context.Canceled), false, false, false, false},
		{"caller's time is up", context.DeadlineExceeded, true, false, false, false},
		{"no answer in time", sent(context.DeadlineExceeded), true, true, false, false},
		{"connection broke", sent(remoting.ErrPeerClose), true, true, true, false},
		{"silent peer", sent(remoting.ErrSilent), true, true, true, false},
		{"garbage", sent(remoting.ErrBadFrame), true, true, true, false},
		{"not sent", unsent(remoting.ErrDraining), true, true, true, false},
		{"too long for a frame", unsent(fmt.Errorf("x: %w", wire.ErrTooLarge)), false, false, false, true},
		{"unreachable", &UnreachableError{Addr: "a:1", Err: errRefused}, true, true, true, false},
		{"unreachable in time", &UnreachableError{Addr: "a:1", Err: context.DeadlineExceeded}, true, true, true, false},
		{"unreachable as the client closes", &UnreachableError{Addr: "a:1", Err: ErrNotRunning}, false, false, false, true},
		{"no address", fmt.Errorf("x: %w", ErrNoBroker), true, true, true, false},
		{"unknown topic", ErrTopicNotFound, true, false, false, false},
		{"no name server", ErrNoNameServer, true, false, false, false},
		{"nobody online", ErrNoMembers, true, false, false, false},
		{"member offline", ErrMemberOffline, true, false, false, false},
		{"protocol", ErrProtocol, true, false, false, false},
		{"joined twice", ErrDuplicateGroup, false, false, false, true},
		{"not joined", ErrNotJoined, false, false, false, true},
		{"bad message", ErrInvalidMessage, false, false, false, true},
		{"not running", ErrNotRunning, false, false, false, true},
		{"old broker", ErrUnsupported, false, false, false, true},
		{"bad name", wire.ErrName, false, false, false, true},
		{"bad filter", wire.ErrFilter, false, false, false, true},
		{"something else", errors.New("x"), false, false, false, false},
	}
	for _, tt := range tests {
		want := class{retriable: tt.retriable, elsewhere: tt.elsewhere, stale: tt.stale, fatal: tt.fatal}
		if got := classify(tt.err); got != want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, want)
		}
		if IsRetriable(tt.err) && IsFatal(tt.err) {
			t.Errorf("%s is both retriable and fatal", tt.name)
		}
	}
}

func TestOutcomeOfASendBack(t *testing.T) {
	gone := &ResponseError{Request: wire.ReqSendBack, Code: wire.RespSystemError, Remark: "look message by offset failed, 123"}
	refused := &ResponseError{Request: wire.ReqSendBack, Code: wire.RespSystemError, Remark: "the broker's sending message is forbidden"}
	unknown := &remoting.CallError{Sent: true, Err: context.DeadlineExceeded}
	unsent := &remoting.CallError{Err: context.DeadlineExceeded}
	for _, tt := range []struct {
		err           error
		gone, unknown bool
	}{
		{&UnreachableError{Addr: "a:1", Err: unknown}, false, false}, // the heartbeat's outcome, not the request's
		{&uncertainError{refused}, false, true},
		{gone, true, false},
		{refused, false, false},
		{unknown, false, true},
		{unsent, false, false},
		{nil, false, false},
	} {
		if IsOriginalGone(tt.err) != tt.gone || IsUnknownOutcome(tt.err) != tt.unknown {
			t.Errorf("%v: gone %v, unknown %v", tt.err, IsOriginalGone(tt.err), IsUnknownOutcome(tt.err))
		}
	}
}
