package rocketmq

import (
	"errors"
	"syscall"
	"time"
)

// refusedLimit bounds the backoff after a refusal.
const refusedLimit = time.Second

// backoffLimit is the longest backoff after err. A machine that refuses a connection is there and answers at no cost: its
// server is being restarted as a rule, and every second after that counts. One that is silent costs an attempt its time
// limit before the backoff begins.
func backoffLimit(limit time.Duration, err error) time.Duration {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return min(limit, refusedLimit)
	}
	return limit
}

// backoff is the time before attempt number failures+1: doubling from low to high, and a random half of it taken off so
// that clients which lost the same broker do not come back in step. No failure, no wait.
func backoff(failures int, low, high time.Duration, random func() float64) time.Duration {
	if failures <= 0 {
		return 0
	}
	full := high
	if shift := failures - 1; shift < 32 && low<<shift < high {
		full = low << shift
	}
	return full - time.Duration(random()*float64(full/2))
}
