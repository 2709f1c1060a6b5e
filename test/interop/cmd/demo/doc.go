// Command demo shows streamd at work: a real RocketMQ, a load of orders, two members, two plugins.
//
// It starts everything itself in a temporary folder and leaves nothing behind: the children die with it, and the folder
// goes. What it shows is what the members log and what their admin listeners say. What it sums up is counted, not
// believed: orders stored by the broker, orders that the plugin says it handled (by id), dead letters stored by the
// broker, and what the group has not consumed yet.
//
// Goroutines: one per child reads its lines; one feeds the orders; the main one draws and decides. A child is waited for
// by whoever stops it.
package main
