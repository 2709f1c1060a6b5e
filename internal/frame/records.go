package frame

// Records is a batch in columns: every slice has one entry a record, or is empty when no record uses it.
//
// Payload holds id, keys, properties and body of record 0, then of record 1, and so on; End holds the four ends of each
// record as offsets into Payload. Properties are in RocketMQ's own text form (name U+0001 value U+0002 ...).
//
// Records that a Builder borrowed have Parts in place of Payload, and End counts as if Payload were there.
type Records struct {
	Dict    []string // topics, broker names and tags; the columns below hold indexes into it
	Topic   []uint32
	Broker  []uint32
	Tag     []uint32 // index into Dict; Dict[0] is "" so that 0 is "no tag"
	QueueID []uint32
	Offset  []uint64

	BornMillis  []uint64
	StoreMillis []uint64
	Attempt     []uint32
	Strand      []uint32 // equal numbers: in order; empty: every record on its own

	End     []uint32 // 4 per record
	Trace   []byte   // TraceSize per record, or empty
	Payload []byte
	Parts   [][]byte // id, keys, properties, body of each record; empty, or Payload is
}

// TraceSize is the length of one record's entry in Records.Trace: trace id (16), span id (8), flags (1).
const TraceSize = 25
