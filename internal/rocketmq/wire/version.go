package wire

import "strconv"

// Version is the ordinal of a RocketMQ release in the list that both ends know (MQVersion; remoting-protocol.md 1.6).
// Ordinals grow with releases, so they can be compared.
type Version int32

// The releases whose ordinals decide something, or which streamd is tested with.
const (
	Version3_0_11 Version = 37
	Version3_4_9  Version = 121 // from here a client's own limit of retries is honored
	Version4_1_0  Version = 232 // its snapshot; Java allows SQL92 from here
	Version4_5_2  Version = 317 // what the Go client says, whatever it is
	Version4_9_0  Version = 393
	Version4_9_3  Version = 399
	Version4_9_4  Version = 401 // name servers answer standard JSON from here
	Version4_9_5  Version = 403
	Version4_9_6  Version = 405
	Version4_9_7  Version = 407
	Version4_9_8  Version = 409
	Version5_0_0  Version = 413
	Version5_1_0  Version = 433 // V2 magic, server-side reset
	Version5_1_1  Version = 435
	Version5_1_2  Version = 437
	Version5_1_3  Version = 439
	Version5_1_4  Version = 441
	Version5_2_0  Version = 453
	Version5_3_0  Version = 473
	Version5_3_1  Version = 475 // above it a server may answer GO_AWAY
	Version5_3_2  Version = 477
	Version5_3_3  Version = 479
	Version5_3_4  Version = 481
	Version5_5_0  Version = 513
)

// String returns the release as Java writes it ("V5_3_3"), or "V" and the ordinal for a release that is in no table.
func (v Version) String() string {
	switch v {
	case Version3_0_11:
		return "V3_0_11"
	case Version3_4_9:
		return "V3_4_9"
	case Version4_1_0:
		return "V4_1_0_SNAPSHOT"
	case Version4_5_2:
		return "V4_5_2"
	case Version4_9_0:
		return "V4_9_0"
	case Version4_9_3:
		return "V4_9_3"
	case Version4_9_4:
		return "V4_9_4"
	case Version4_9_5:
		return "V4_9_5"
	case Version4_9_6:
		return "V4_9_6"
	case Version4_9_7:
		return "V4_9_7"
	case Version4_9_8:
		return "V4_9_8"
	case Version5_0_0:
		return "V5_0_0"
	case Version5_1_0:
		return "V5_1_0"
	case Version5_1_1:
		return "V5_1_1"
	case Version5_1_2:
		return "V5_1_2"
	case Version5_1_3:
		return "V5_1_3"
	case Version5_1_4:
		return "V5_1_4"
	case Version5_2_0:
		return "V5_2_0"
	case Version5_3_0:
		return "V5_3_0"
	case Version5_3_1:
		return "V5_3_1"
	case Version5_3_2:
		return "V5_3_2"
	case Version5_3_3:
		return "V5_3_3"
	case Version5_3_4:
		return "V5_3_4"
	case Version5_5_0:
		return "V5_5_0"
	}
	return "V" + strconv.Itoa(int(v))
}
