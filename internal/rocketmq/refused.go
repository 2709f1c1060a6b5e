package rocketmq

import (
	"errors"
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// RefusalKind is why access control refused a request.
type RefusalKind string

// The kinds of refusals.
const (
	RefusedNoKey      RefusalKind = "key_missing"     // the request was not signed
	RefusedUnknownKey RefusalKind = "key_unknown"     // nobody knows the access key
	RefusedDisabled   RefusalKind = "key_disabled"    // the account is switched off
	RefusedSignature  RefusalKind = "signature_wrong" // the secret key is another one there
	RefusedRight      RefusalKind = "right_missing"   // the account may not do this
	RefusedOther      RefusalKind = "access_refused"
)

// Refusal is access control's answer, in the terms of the one who can change it. It never holds a secret.
type Refusal struct {
	Kind    RefusalKind
	Account string // the access key; "" when neither the broker nor the client names one
	// Resource is what the right is missing on, as RocketMQ 5 writes it: Topic:Orders, Group:billing, or Cluster for what only
	// an administrator may do. RefusedRight only.
	Resource string
	// Rights are those to grant on Resource, as mqadmin writes them: Pub, or Sub,Get.
	Rights string
	// File tells that the broker has access control 1.0 (4.x, and streamd's own broker): its rights stand in plain_acl.yml.
	File bool
	// Streamd tells that it is streamd's own broker, which reads the file that its acl names, and again on SIGHUP.
	Streamd bool
}

// AccessRefused returns access control's word when that is what err is about: a wrong key, or a right that is missing.
// Repeating the request cannot help until somebody changes the keys here or the rights there; then it does, without a restart.
func AccessRefused(err error) (Refusal, bool) {
	resp, ok := errors.AsType[*ResponseError](err)
	if !ok {
		return Refusal{}, false
	}
	return resp.Refusal()
}

// ErrorType is the class of the error for error.type of metrics and spans.
func (e *ResponseError) ErrorType() string {
	if r, refused := e.Refusal(); refused {
		return string(r.Kind)
	}
	return e.Code.String()
}

// Refusal reads the answer of access control. RocketMQ has no code of its own for it: 4.x answers 1 with the text of an
// exception, 5.x answers 16, which also says that a topic or broker takes nothing (remoting-protocol.md 1.11).
func (e *ResponseError) Refusal() (Refusal, bool) {
	var r Refusal
	switch {
	case e.Code == wire.RespNoPermission:
		r = readRefusal5(e.Remark)
		r.Streamd = strings.Contains(e.Remark, "in the file that its acl names")
		r.File = r.Streamd
	case e.Code == wire.RespSystemError && strings.Contains(e.Remark, "AclException"):
		r = readRefusal4(e.Remark)
		r.File = true
	}
	if r.Kind == "" {
		return r, false
	}
	if r.Account == "" {
		r.Account = e.Account
	}
	if r.Kind == RefusedRight {
		r.Rights = rightsOf(e.Request, r.Resource)
	}
	return r, true
}

// readRefusal5 knows the words of 5.x (AuthenticationException, AuthorizationException), which the embedded broker shares. It
// adds where its accounts are.
func readRefusal5(remark string) Refusal {
	user := between(remark, "User:", " ")
	switch {
	case strings.Contains(remark, "username cannot be null"):
		return Refusal{Kind: RefusedNoKey}
	case strings.Contains(remark, "check signature failed"):
		return Refusal{Kind: RefusedSignature}
	case user != "" && strings.Contains(remark, "not found"):
		return Refusal{Kind: RefusedUnknownKey, Account: user}
	case user != "" && strings.Contains(remark, "disable"):
		return Refusal{Kind: RefusedDisabled, Account: user}
	case user != "" && strings.Contains(remark, "has no permission to access "):
		resource := between(remark, "has no permission to access ", " from ")
		if !strings.HasPrefix(resource, "Topic:") && !strings.HasPrefix(resource, "Group:") {
			resource = "Cluster"
		}
		return Refusal{Kind: RefusedRight, Account: user, Resource: resource}
	}
	return Refusal{}
}

// readRefusal4 knows the words of 4.x (PlainPermissionManager, PlainPermissionChecker).
func readRefusal4(remark string) Refusal {
	switch {
	case strings.Contains(remark, "No accessKey is configured"):
		return Refusal{Kind: RefusedNoKey}
	case strings.Contains(remark, "No acl config for "):
		return Refusal{Kind: RefusedUnknownKey, Account: between(remark, "No acl config for ", ",")}
	case strings.Contains(remark, "Check signature failed"):
		return Refusal{Kind: RefusedSignature, Account: between(remark, "accessKey=", ",")}
	case strings.Contains(remark, "No default permission for topic:"):
		return Refusal{Kind: RefusedRight, Resource: "Topic:" + between(remark, "permission for topic:", ",")}
	case strings.Contains(remark, "No default permission for group:"):
		return Refusal{Kind: RefusedRight, Resource: "Group:" + between(remark, "permission for group:", ",")}
	case strings.Contains(remark, "Need admin permission"):
		return Refusal{Kind: RefusedRight, Account: between(remark, "accessKey=", " "), Resource: "Cluster"}
	}
	return Refusal{Kind: RefusedOther}
}

// between is the text after one mark and up to another, or to the end.
func between(text, after, before string) string {
	_, rest, ok := strings.Cut(text, after)
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, before)
	return rest
}

// rightsOf are the least rights that who sends such requests needs on the resource, all that streamd ever asks for it.
func rightsOf(request wire.RequestCode, resource string) string {
	switch resource {
	case "Cluster":
		return ""
	case "Group:" + wire.ToolsGroup: // nothing but pulls
		return "Sub"
	}
	switch request {
	case wire.ReqSendMessage, wire.ReqSendMessageV2, wire.ReqSendBatchMessage, wire.ReqEndTransaction, wire.ReqRecallMessage:
		if strings.HasPrefix(resource, "Topic:") {
			return "Pub"
		}
	default: // reads, or belongs to consuming
	}
	return "Sub,Get"
}

// String says what is wrong and what to do about it.
func (r Refusal) String() string {
	who := "the access key"
	if r.Account != "" {
		who = fmt.Sprintf("the access key %q", r.Account)
	}
	switch r.Kind {
	case RefusedNoKey:
		return "access control wants signed requests and this client has no access key; set access_key and secret_key of the broker in the config"
	case RefusedUnknownKey:
		if r.File {
			return "access control does not know " + who + "; correct access_key, or add an account to " + r.file()
		}
		return fmt.Sprintf("access control does not know %s; correct access_key, or make it by: mqadmin createUser -n NAMESERVER -c CLUSTER -u %s -p SECRET", who, orPlaceholder(r.Account))
	case RefusedDisabled:
		return fmt.Sprintf("%s is switched off; switch it on by: mqadmin updateUser -n NAMESERVER -c CLUSTER -u %s -s enable", who, orPlaceholder(r.Account))
	case RefusedSignature:
		return "access control knows " + who + " with another secret; correct secret_key of the broker in the config"
	case RefusedRight:
		return r.missingRight(who)
	default:
		return "access control refuses " + who
	}
}

// missingRight says how the right is granted. What an account has on a topic already is replaced by that, on 5.x and in the
// file of 4.x, so who reads and sends needs all at once.
func (r Refusal) missingRight(who string) string {
	kind, name, _ := strings.Cut(r.Resource, ":")
	what := strings.ToLower(kind) + " " + name
	switch {
	case r.Resource == "Cluster":
		return who + " is no administrator's, and only one may do this"
	case r.File:
		return who + r.missingLine(kind, name, what)
	}
	keep := ""
	if kind == "Topic" {
		keep = " (-a Pub,Sub,Get if it has other rights on the topic: the command replaces them)"
	}
	return fmt.Sprintf("%s lacks %s on %s; grant it by: mqadmin createAcl -n NAMESERVER -c CLUSTER -s User:%s -r %s -a %s -d Allow%s",
		who, r.Rights, what, orPlaceholder(r.Account), r.Resource, r.Rights, keep)
}

// missingLine is the grant in the file of access control 1.0.
func (r Refusal) missingLine(kind, name, what string) string {
	list, right := "topicPerms", "SUB"
	if kind == "Group" {
		list = "groupPerms"
	}
	if r.Rights == "Pub" {
		right = "PUB"
	}
	quote, keep := "", ""
	if strings.HasPrefix(name, "%") {
		quote = "'" // no plain word of YAML begins so
	}
	if kind == "Topic" {
		keep = fmt.Sprintf(" (%s%s=PUB|SUB%s in place of another right on the topic)", quote, name, quote)
	}
	return fmt.Sprintf(" lacks %s on %s; grant it: add %s%s=%s%s to its %s in %s%s", right, what, quote, name, right, quote, list, r.file(), keep)
}

// file is where the accounts of access control 1.0 are, and when a change of them counts.
func (r Refusal) file() string {
	if r.Streamd {
		return "the file that acl of the broker names, which it reads again on SIGHUP"
	}
	return "conf/plain_acl.yml of the broker, which reads the file by itself"
}

func orPlaceholder(account string) string {
	if account == "" {
		return "KEY"
	}
	return account
}
