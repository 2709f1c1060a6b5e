package wire

// Command is one frame's content: a request or a response (RemotingCommand).
type Command struct {
	Code     int32 // request code, or response code when Flag has FlagResponse
	Language Language
	Version  int32
	Opaque   int32
	Flag     int32
	Remark   string
	// Ext holds the header fields of the code. nil = the member was absent, empty = it was there and empty.
	Ext      map[string]string
	Body     []byte // aliases the frame it was decoded from
	Encoding Encoding
}

// The bits of Command.Flag.
const (
	FlagResponse int32 = 1 << 0
	FlagOneway   int32 = 1 << 1
)

// Encoding is the form of a frame's header: the byte after the length.
type Encoding uint8

// The header encodings.
const (
	EncodingJSON   Encoding = 0
	EncodingBinary Encoding = 1 // "ROCKETMQ"
)

// Language is the implementation a peer says it is (LanguageCode).
type Language uint8
