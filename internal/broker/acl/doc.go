// Package acl decides whether a request to the embedded broker is allowed: RocketMQ's ACL 1.0 (access key, secret key,
// signature, permissions of topics and groups, white addresses, administrators; remoting-protocol.md 1.11), in the file
// format of its plain_acl.yml.
//
// Promises: what no account and no white address grants is refused. A code that is not known here needs an administrator, so
// that a new one is never open by mistake. Refusals carry the code and the words of RocketMQ 5.3.3, and never a secret. The
// signature is compared in constant time. As with RocketMQ, reading the name server needs no account, since its clients
// do not sign there when they have none; changing it needs an administrator here.
//
// A List is immutable and safe for concurrent use. The package starts no goroutines.
package acl
