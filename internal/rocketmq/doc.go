// Package rocketmq is the client: name servers, routes, connections, and typed requests to brokers.
package rocketmq
