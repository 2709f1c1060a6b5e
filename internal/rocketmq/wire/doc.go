// Package wire turns RocketMQ's remoting protocol into Go values and back: frames, both header encodings, stored messages,
// and the typed requests, responses and bodies that streamd sends or answers. It does no I/O, knows no clock, holds no state
// and starts no goroutine.
//
// # Promises
//
//   - What real clients and servers were recorded to send is read to exactly what it says, and written again byte for byte:
//     every binary header, every JSON header as Java writes it, every stored message (testdata/vectors).
//   - Hostile input gives an error, never a panic. Every error wraps one of the Err values of this package. A length that the
//     input states costs no memory until its bytes are there: headers, messages and batches allocate at most twice of what
//     arrived, decompression at most a few times the limit its caller sets. JSON bodies state no lengths; DecodeBody refuses
//     those with more objects than any real one of their size.
//   - What is decoded aliases the buffer it came from: Command.Body, and every slice of a Message. Header fields are copied
//     once, as one string. Walking a pull's body with Message.Decode, Property and AppendIdentity allocates nothing.
//   - A broken message costs itself alone wherever its own size is intact (Message.Decode).
//   - All is safe for concurrent use on different values; a value is used by one goroutine at a time, but for an IDGenerator.
//     Inflater and Deflater keep working memory: one for each goroutine.
//
// # Where things are
//
// A request is described once, by its bind method, for both directions. NewHeader and NewResponseHeader give the empty type
// for a code; EncodeFields and DecodeFields move it; EncodeBody and DecodeBody move bodies, in fastjson's dialect too.
//
//	code                          header                        body                     file
//	10 310 320 324 325            SendRequest, SendResponse     message or BatchPart     request_send.go, batch.go
//	11 361                        PullRequest, PullResponse     answer: Message          request_pull.go, message.go
//	12 33                         QueryMessage…, ViewMessage…   answer: Message          request_admin.go
//	14 15 29 30 31 32             …OffsetRequest, EarliestTime… –                        request_offset.go
//	17                            CreateTopicRequest            –                        request_admin.go
//	21                            PlainRequest                  TopicConfigTable         body_route.go
//	34                            PlainRequest, HeartbeatRes…   HeartbeatData            request_group.go, body_group.go
//	35                            UnregisterClientRequest       –                        request_group.go
//	36                            SendBackRequest               –                        request_send.go
//	37 39                         EndTransaction…, CheckTrans…  39: Message              request_client.go
//	38                            ConsumerListRequest           ConsumerList             request_group.go, body_group.go
//	40                            NotifyConsumersRequest        –                        request_group.go
//	41 42                         PlainRequest                  LockBody, LockResult     body_group.go
//	46                            PlainRequest                  CheckClientBody          body_group.go
//	100 101 102 219               PutKV…, KV…, KVListRequest    219: KVTable             request_nameserver.go, body_route.go
//	43                            PlainRequest                  GroupOffsets             body_offsets.go
//	103 104 322                   RegisterBroker…, …            RegisterBrokerBody, …    request_nameserver.go, body_route.go
//	105                           RouteRequest                  TopicRoute               request_nameserver.go, body_route.go
//	106                           PlainRequest                  ClusterInfo              body_route.go
//	200 201 352                   PlainRequest, GroupRequest    SubscriptionGroup, …     request_admin.go, body_admin.go
//	202 300 351                   TopicRequest                  TopicStats, …            request_admin.go, body_admin.go
//	203 204                       …ConnectionsRequest           …Connections             request_admin.go, body_admin.go
//	206 343                       PlainRequest, GroupRequest    TopicList                request_admin.go, body_route.go
//	207 215 216                   DeleteGroup…, DeleteTopic…    –                        request_admin.go, request_nameserver.go
//	208                           ConsumeStatsRequest           ConsumeStats             request_admin.go, body_admin.go
//	220 222                       ResetClient…, ResetOffset…    ResetOffsetBody          request_client.go, body_client.go
//	221 223                       ClientStatus…, ConsumerSt…    ConsumerStatusBody       request_client.go, body_client.go
//	303 314 345                   TimeSpan…, CloneOffset…, …    TimeSpans, …             request_admin.go, body_admin.go
//	307                           RunningInfoRequest            ConsumerRunningInfo      request_client.go, body_client.go
//	309                           ConsumeDirectlyRequest        ConsumeDirectlyResult    request_client.go, body_client.go
//	326                           PushReplyRequest              the reply's body         request_send.go
//
// The POP family has names and no types: streamd pulls.
//
// # Sources
//
// remoting-protocol.md is the specification, vectors/README.md wins over it, design.md over both.
package wire
