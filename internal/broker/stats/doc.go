// Package stats counts what a broker did, by name and key, over the last minute, hour and day, and its totals
// (BrokerStatsManager and StoreStatsService of RocketMQ, whose numbers mqadmin and dashboards show).
//
// Promises: nothing runs in the background. Spans of time are rings of buckets that are moved on when somebody counts or
// looks, so an idle broker costs nothing and a test in virtual time sees exact numbers. Memory is bounded by the number of
// keys, which is limited. All methods are safe for concurrent use.
package stats
