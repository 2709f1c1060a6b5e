// Package rocketmq is the client: name servers, routes, connections, and typed requests to brokers.
//
// Promises:
//
//   - "Not there" and "could not ask" are different results: ErrTopicNotFound and ErrNoNameServer, Committed's ok and its
//     error, ErrNoMembers and a failure to list members.
//   - The last known route of a topic stays while no name server answers, and for two minutes while all that answer deny the
//     topic without a break: a name server that was just started denies everything until the brokers register again.
//   - What other members of a group subscribe to is told as they wrote it, and never keeps a group from being told.
//   - Routes are renewed every 30 s, and within a second after an error that says they are stale (IsRouteStale) or a question
//     of what a member here holds (307: who asks may know a newer one); that waits for name servers only.
//   - One connection a broker address, shared by all callers. A lost one comes back after 100 ms to 2 s, with jitter, as
//     long as somebody waits for it, or a group is joined and the address is in a route; waiting ends with the caller's
//     context, or when the address leaves the routes.
//   - A broker learns of the joined groups before anything else is asked on a new connection, and before a pull with a
//     subscription version it does not know.
//   - Every request is bounded: by its own timeout within the caller's context. A pull's is longer than the broker may hold it.
//   - Errors can be told apart: IsRetriable, IsRouteStale, IsFatal, IsUnknownOutcome, IsOriginalGone. A *ResponseError carries
//     the broker's code and words.
//   - A broker that is silent keeps no other from being told something: heartbeats, leaves and questions go to all side by side, and
//     none waits for another's.
//   - Commits, send-backs and sends wait for the broker's word. Only masters are asked for them; replicas are read from.
//   - No I/O before Start. Nothing is global: clients of different clusters live side by side.
//
// Goroutines of a Client: one that renews routes, one that heartbeats, one for each watched topic (RouteChanged) and for
// each route query under way, one for each address (peer.run) and one for each connection that ends, those of package
// remoting for each connection. Callbacks of a GroupSpec run on remoting's handler goroutines. Close ends them all, and waits
// for callbacks within its context.
package rocketmq
