package wire

// ConsumerRunningInfo is the answer to 307.
type ConsumerRunningInfo struct{}

// ConsumeDirectlyResult is the answer to 309.
type ConsumeDirectlyResult struct{}
