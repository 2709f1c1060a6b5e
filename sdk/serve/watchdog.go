package serve

import (
	"context"
	"log/slog"
	"os"
	"time"

	"google.golang.org/grpc"
)

// connectionGrace is how long the process outlives its connection: long enough for a host that closes it and then asks
// for the end in order.
const connectionGrace = 5 * time.Second

// watchParent reports when the parent is another one: a process whose parent dies is inherited at once.
func watchParent(ctx context.Context, first int, parent func() int, every time.Duration, gone chan<- string) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if parent() != first {
				report(gone, "the host has died")
				return
			}
		}
	}
}

// watchConnection reports when the host's connection ends. go-plugin's broker stream lives as long as the connection, so
// its end is the connection's; lanes may come and go.
func watchConnection(gone chan<- string) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		err := handler(srv, stream)
		if info.FullMethod == "/plugin.GRPCBroker/StartStream" {
			time.AfterFunc(connectionGrace, func() { report(gone, "the host has closed its connection") })
		}
		return err
	}
}

func report(gone chan<- string, why string) {
	select {
	case gone <- why:
	default:
	}
}

// exitWhenGone ends the process: what it does can reach nobody, and the host's successor starts its own.
func exitWhenGone(ctx context.Context, gone <-chan string, logger *slog.Logger) {
	select {
	case <-ctx.Done():
	case why := <-gone:
		logger.Warn("ending because there is no host", "cause", why) // goes nowhere when stderr is closed, which is fine
		os.Exit(3)                                                   //nolint:forbidigo // the author's code may block; nothing else ends it
	}
}
