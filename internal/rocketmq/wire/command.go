package wire

// Command is one frame's content: a request or a response (RemotingCommand). The zero value is an empty JSON request of
// a Java peer; NewRequest and NewResponse fill in what streamd says of itself.
type Command struct {
	Code     int32 // request code, or response code when Flag has FlagResponse
	Language Language
	Version  int32 // ordinal of a release, see Version
	Opaque   int32 // copied from the request into its response
	Flag     int32
	Remark   string
	// EmptyRemark tells that the member was there and empty, as the Go client sends it. Of no meaning beyond that.
	EmptyRemark bool
	Ext         Fields
	Body        []byte // aliases the frame it was decoded from; empty and absent are the same on the wire
	Encoding    Encoding
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

// String returns the encoding's name as it stands in the member serializeTypeCurrentRPC.
func (e Encoding) String() string {
	switch e {
	case EncodingJSON:
		return "JSON"
	case EncodingBinary:
		return "ROCKETMQ"
	}
	return "unknown"
}

// OwnVersion is the release that streamd says it is (4.9.8): the highest that asks nothing of a client which streamd
// does not do (remoting-protocol.md 1.6).
const OwnVersion = Version4_9_8

// NewRequest returns a JSON request with the code and fields of h. The caller sets Opaque, and Flag for a oneway.
func NewRequest(h Request, body []byte) *Command {
	return &Command{
		Code:     int32(h.RequestCode()),
		Language: LanguageGo,
		Version:  int32(OwnVersion),
		Ext:      EncodeFields(h),
		Body:     body,
	}
}

// NewResponse returns the response to req, in the request's own encoding and with its opaque. The caller may set Ext and
// Body. Ext starts empty, not absent: Java clients read some answers' fields without a check.
func NewResponse(req *Command, code ResponseCode, remark string) *Command {
	return &Command{
		Code:     int32(code),
		Language: LanguageGo,
		Version:  int32(OwnVersion),
		Opaque:   req.Opaque,
		Flag:     FlagResponse,
		Remark:   remark,
		Ext:      Fields{},
		Encoding: req.Encoding,
	}
}

// IsResponse tells whether the command answers a request; only then is Code a response code.
func (c *Command) IsResponse() bool { return c.Flag&FlagResponse != 0 }

// IsOneway tells whether the sender of a request wants no response.
func (c *Command) IsOneway() bool { return c.Flag&FlagOneway != 0 }

// RequestCode returns the code of a request.
func (c *Command) RequestCode() RequestCode { return RequestCode(c.Code) }

// ResponseCode returns the code of a response.
func (c *Command) ResponseCode() ResponseCode { return ResponseCode(c.Code) }
