package broker

import (
	"fmt"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Why a code is not there and what to do instead. docs/embedded-broker.md lists them.
const (
	absentPOP        = ": this broker has no POP; consume by pull, as push consumers do by default"
	absentStatic     = ": this broker has no static topics; make an ordinary one with 17 UPDATE_AND_CREATE_TOPIC"
	absentReplicas   = ": this broker has no replicas; run a RocketMQ cluster where one machine is not enough"
	absentController = ": this broker has no controller; run a RocketMQ cluster where one machine is not enough"
	absentColdData   = ": this broker does not keep messages in mapped files, so there is no cold data to throttle"
	absentRocksDB    = ": this broker does not keep its tables in RocksDB"
	absentAccounts   = ": this broker's accounts are in its config and are not changed by requests"
)

// absent says why a code that official clients or tools send is not there; "" for any other code.
func absent(c code) string {
	switch c {
	case wire.ReqPopMessage, wire.ReqAckMessage, wire.ReqPeekMessage, wire.ReqChangeInvisibleTime, wire.ReqNotification,
		wire.ReqPollingInfo, wire.ReqBatchAckMessage, wire.ReqPopRollback:
		return absentPOP
	case wire.ReqUpdateStaticTopic:
		return absentStatic
	case wire.ReqResetMasterFlushOffset, wire.ReqAddBroker, wire.ReqRemoveBroker, wire.ReqGetAllDelayOffset,
		60, 61, 905, 906:
		return absentReplicas
	case wire.ReqGetBrokerEpoch, 1001, 1002, 1003, 1004, 1005, 1006, 1008, 1009, 1010, 1011, 1012, 1013:
		return absentController
	case wire.ReqUpdateColdData, wire.ReqRemoveColdData, wire.ReqSetCommitLogReadMode:
		return absentColdData
	case wire.ReqCheckRocksDB, wire.ReqExportRocksDB:
		return absentRocksDB
	case 50, 51, 52, 53, 54, // ACL 1.0, mqadmin 4.9
		3001, 3002, 3003, 3004, 3005, 3006, 3007, 3008, 3009, 3010: // ACL 2.0
		return absentAccounts
	default:
		return ""
	}
}

// notSupported refuses a code that is not there. The leading blank is RocketMQ's (vectors errors [1774]).
func notSupported(c code) *remote.Answer {
	return plain(wire.RespNotSupported, fmt.Sprintf(" request type %d not supported%s", c, absent(c)))
}
