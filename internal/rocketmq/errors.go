package rocketmq

import "errors"

// Sentinels some caller branches on.
var (
	ErrTopicNotFound  = errors.New("topic not found")            // no name server knows it (17)
	ErrDuplicateGroup = errors.New("group joined twice")         // same group in one client
	ErrNoBroker       = errors.New("no broker serves the queue") // route known, no address
)
