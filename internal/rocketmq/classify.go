package rocketmq

import (
	"context"
	"errors"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// class is what an error means for the one who asked.
type class struct {
	retriable bool // the same request may succeed later
	elsewhere bool // a send may succeed at another broker at once
	stale     bool // the route that led here may be outdated
	fatal     bool // repeating cannot help until somebody changes something
}

// IsRetriable tells that the same request may succeed later, without anybody's doing.
func IsRetriable(err error) bool { return classify(err).retriable }

// IsRouteStale tells that the error may come from an outdated route. The client has asked for a new one by then.
func IsRouteStale(err error) bool { return classify(err).stale }

// IsFatal tells that repeating the request cannot help until somebody changes the message, the permissions or the
// configuration. An error is never both fatal and retriable; a canceled context is neither.
func IsFatal(err error) bool { return classify(err).fatal }

// IsUnknownOutcome tells that the request may have taken effect although no answer came: it left this process and then
// its time was up or the connection broke.
func IsUnknownOutcome(err error) bool {
	if _, earlier := errors.AsType[*uncertainError](err); earlier {
		return true
	}
	if _, unsent := errors.AsType[*UnreachableError](err); unsent {
		return false // what it wraps is the connection's failure, not the request's
	}
	call, ok := errors.AsType[*remoting.CallError](err)
	return ok && call.Sent
}

// uncertainError is the failure of the last attempt of several, of which an earlier one may have taken effect.
type uncertainError struct{ error }

func (e *uncertainError) Unwrap() error { return e.error }

func (e *uncertainError) Error() string {
	return e.error.Error() + " (an earlier attempt got no answer and may have taken effect)"
}

// IsOriginalGone tells that a broker refused a send-back because it no longer has the message (consumer-semantics.md 8.1
// step 7): sending back again cannot help, sending the message anew can. Brokers have no code for it, only a remark.
func IsOriginalGone(err error) bool {
	var resp *ResponseError
	return errors.As(err, &resp) && resp.Request == wire.ReqSendBack && resp.Code == wire.RespSystemError &&
		strings.Contains(resp.Remark, "look message by offset failed")
}

func classify(err error) class {
	var resp *ResponseError
	var call *remoting.CallError
	var unreachable *UnreachableError
	switch {
	case err == nil:
		return class{}
	case errors.As(err, &resp):
		if _, refused := resp.Refusal(); refused {
			return class{fatal: true, elsewhere: true} // each broker has rules of its own
		}
		return classifyCode(resp.Code)
	case errors.Is(err, ErrNotRunning):
		return class{fatal: true}
	case errors.Is(err, context.Canceled):
		return class{} // the caller's own wish
	case errors.Is(err, ErrNoBroker), errors.As(err, &unreachable):
		return class{retriable: true, elsewhere: true, stale: true} // it may have moved
	case errors.As(err, &call):
		// No answer in time may be load; a broken or silent connection may be a broker that moved.
		timeout := errors.Is(err, context.DeadlineExceeded)
		bad := errors.Is(err, wire.ErrNotEncodable) || errors.Is(err, wire.ErrTooLarge)
		return class{retriable: !bad, elsewhere: !bad, stale: !timeout && !bad, fatal: bad}
	case errors.Is(err, ErrTopicNotFound), errors.Is(err, ErrNoNameServer), errors.Is(err, ErrNoMembers), errors.Is(err, ErrGroupNotFound),
		errors.Is(err, ErrMemberOffline), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrProtocol):
		return class{retriable: true} // appears, comes back, or reports soon
	case errors.Is(err, ErrDuplicateGroup), errors.Is(err, ErrNotJoined), errors.Is(err, ErrInvalidMessage),
		errors.Is(err, ErrUnsupported), errors.Is(err, ErrStaticTopic), errors.Is(err, wire.ErrName), errors.Is(err, wire.ErrFilter):
		return class{fatal: true} // the caller's doing
	default:
		return class{}
	}
}

// classifyCode sorts remoting-protocol.md 2.2. "Elsewhere" is the list of codes after which a Java producer tries another
// broker. A code that nobody knows is retriable: an unknown failure must not make anybody give up a message.
func classifyCode(code wire.ResponseCode) class {
	switch code {
	case wire.RespSuccess:
		return class{}
	case wire.RespSystemError, wire.RespSystemBusy, // any exception; flow control
		wire.RespNoBuyerID, wire.RespNotInCurrentUnit: // unit routing
		return class{retriable: true, elsewhere: true}
	case wire.RespServiceNotAvailable, wire.RespTopicNotExist, // shutting down or demoted; topic moved or not here yet
		wire.RespGoAway: // leaving
		return class{retriable: true, elsewhere: true, stale: true}
	case wire.RespInvalidParameter, wire.RespNotLeaderForQueue: // fewer queues than we believe; static topic moved
		return class{retriable: true, stale: true}
	case wire.RespNoPermission: // topic's or broker's permission changed (the route shows it), or access refused
		return class{fatal: true, elsewhere: true, stale: true}
	case wire.RespNotSupported, wire.RespVersionNotSupported, wire.RespMessageIllegal, wire.RespSubscriptionParseFailed,
		wire.RespBroadcastConsumption, wire.RespIllegalOperation, wire.RespTopicExists, wire.RespUserNotExist, wire.RespPolicyNotExist:
		return class{fatal: true}
	default:
		return class{retriable: true}
	}
}
