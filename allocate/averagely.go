package allocate

// NewAveragely makes Java's AVG: contiguous ranges of the sorted queues, the first members get one queue more
// (AllocateMessageQueueAveragely; consumer-semantics.md 2.9).
func NewAveragely(NoConfig) (Strategy, error) {
	return &builtin{name: NameAveragely, allocate: averagely}, nil
}

func averagely(in Input) ([]int32, error) {
	owner := make([]int32, len(in.Queues))
	each, more := len(in.Queues)/len(in.Members), len(in.Queues)%len(in.Members)
	next := 0
	for member := range in.Members {
		count := each
		if member < more {
			count++
		}
		for range count {
			owner[next] = asOwner(member)
			next++
		}
	}
	return owner, nil
}

// NewAveragelyByCircle makes Java's AVG_BY_CIRCLE: the sorted queues are dealt like cards
// (AllocateMessageQueueAveragelyByCircle; consumer-semantics.md 2.9).
func NewAveragelyByCircle(NoConfig) (Strategy, error) {
	return &builtin{name: NameAveragelyByCircle, allocate: byCircle}, nil
}

func byCircle(in Input) ([]int32, error) {
	owner := make([]int32, len(in.Queues))
	for i := range owner {
		owner[i] = asOwner(i % len(in.Members))
	}
	return owner, nil
}
