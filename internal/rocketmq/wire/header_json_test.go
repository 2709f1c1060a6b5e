package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestOddJSONHeaders(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header string
		want   Command
	}{
		"empty":                 {`{}`, Command{Language: LanguageUnknown}},
		"white space":           {" { \"code\" :\t1 ,\n\"opaque\": 2 } \r\n", Command{Code: 1, Opaque: 2, Language: LanguageUnknown}},
		"language as a number":  {`{"language":9}`, Command{Language: LanguageGo}},
		"unknown language":      {`{"language":"COBOL"}`, Command{Language: LanguageUnknown}},
		"language out of range": {`{"language":1000}`, Command{Language: LanguageUnknown}},
		"language null":         {`{"language":null}`, Command{Language: LanguageUnknown}},
		"quoted numbers":        {`{"code":"11","version":"479","language":"JAVA"}`, Command{Code: 11, Version: 479}},
		"null number":           {`{"code":null,"language":"JAVA"}`, Command{}},
		"null fields":           {`{"extFields":null,"language":"JAVA"}`, Command{}},
		"empty fields":          {`{"extFields":{},"language":"JAVA"}`, Command{Ext: Fields{}}},
		"null remark":           {`{"remark":null,"language":"JAVA"}`, Command{}},
		"empty remark":          {`{"remark":"","language":"JAVA"}`, Command{EmptyRemark: true}},
		"unknown members":       {`{"x":{"y":[1,"}",{"z":null}]},"code":3,"language":"JAVA","w":[]}`, Command{Code: 3}},
		"field values of other types": {
			`{"extFields":{"n":1,"b":true,"f":-1.5e3,"o":{"k":[1]},"z":null,"s":"x"},"language":"JAVA"}`,
			Command{Ext: Fields{{"n", "1"}, {"b", "true"}, {"f", "-1.5e3"}, {"o", `{"k":[1]}`}, {"s", "x"}}},
		},
		"repeated field": {`{"extFields":{"a":"1","a":"2"},"language":"JAVA"}`, Command{Ext: Fields{{"a", "1"}, {"a", "2"}}}},
		"escapes": {
			`{"remark":"\"\\\/\b\f\n\r\t\u0001\u00e9\ud83d\ude00\ud800x\u8ba2","language":"JAVA"}`,
			Command{Remark: "\"\\/\b\f\n\r\t\x01é😀\uFFFDx订"},
		},
		"escaped key":       {`{"c\u006fde":5,"language":"JAVA"}`, Command{Code: 5}},
		"raw text":          {`{"remark":"订单 <&> 😀","language":"JAVA"}`, Command{Remark: "订单 <&> 😀"}},
		"Go's escapes":      {`{"remark":"\u003ca\u0026","language":"JAVA"}`, Command{Remark: "<a&"}},
		"surrogate at end":  {`{"remark":"\ud83d","language":"JAVA"}`, Command{Remark: "\uFFFD"}},
		"negative numbers":  {`{"code":-1000,"opaque":-2147483648,"language":"JAVA"}`, Command{Code: -1000, Opaque: -1 << 31}},
		"largest of 32 bit": {`{"code":2147483647,"language":"JAVA"}`, Command{Code: 1<<31 - 1}},
	}
	for name, tt := range tests {
		var got Command
		if err := got.Decode(jsonContent(tt.header)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestBrokenJSONHeaders(t *testing.T) {
	t.Parallel()
	for _, header := range []string{
		``, ` `, `null`, `[]`, `"x"`, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{"a":1 "b":2}`,
		`{"code":x}`, `{"code":1.5}`, `{"code":2147483648}`, `{"code":{}}`, `{"code":""}`, `{}x`, `{}{}`,
		`{"remark":"\x"}`, `{"remark":"\u12"}`, `{"remark":"\u12zz"}`, `{"remark":"\`, `{"remark":"\"`, `{"remark":"a\"}`,
		`{"extFields":[]}`, `{"extFields":"x"}`, `{"extFields":{"a"}}`, `{"extFields":{"a":}}`, `{"extFields":{"a":"b"]}`,
		`{"x":[1`, `{"x":[1,`, `{"x":[1 2]}`, `{"x":[,]}`, `{"x":}`, `{"x":{1:2}}`,
	} {
		var c Command
		if err := c.Decode(jsonContent(header)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", header, err)
		}
	}
}

func TestJSONHeaderEscapes(t *testing.T) {
	t.Parallel()
	c := Command{Language: LanguageGo, Version: 409, Remark: "a\"\\\n\r\t\x01\x1f é", Ext: Fields{{"i", "KEYS\x01k\x02"}}}
	out, err := AppendHeader(nil, &c, 0)
	const want = `{"code":0,"extFields":{"i":"KEYS\u0001k\u0002"},"flag":0,"language":"GO","opaque":0,"remark":"a\"\\\n\r\t\u0001\u001f é","serializeTypeCurrentRPC":"JSON","version":409}`
	if err != nil || string(out[PrefixSize+headerMark:]) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
}

func TestUnknownLanguages(t *testing.T) {
	t.Parallel()
	for _, l := range []Language{LanguageUnknown, 77, LanguageNodeJS} {
		for _, e := range []Encoding{EncodingJSON, EncodingBinary} {
			out, err := AppendFrame(nil, &Command{Language: l, Encoding: e})
			if err != nil {
				t.Fatal(err)
			}
			var got Command
			if err := got.Decode(out[PrefixSize:]); err != nil || got.Language != l {
				t.Errorf("%s as %s: %s, %v", l, e, got.Language, err)
			}
		}
	}
	if s := Language(77).String(); s != "77" {
		t.Errorf("language 77 prints as %s", s)
	}
}

// TestDecodeReusesFields shows that a Command that is decoded into again keeps nothing of before.
func TestDecodeReusesFields(t *testing.T) {
	t.Parallel()
	var c Command
	for _, header := range []string{`{"extFields":{"a":"1","b":"2"},"remark":"r"}`, `{"extFields":{"c":"3"}}`, `{}`, `{"extFields":{}}`} {
		if err := c.Decode(append(jsonContent(header), "body"...)); err != nil {
			t.Fatal(err)
		}
		var fresh Command
		if err := fresh.Decode(append(jsonContent(header), "body"...)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(c, fresh) {
			t.Errorf("%s: %+v, want %+v", header, c, fresh)
		}
	}
}

func TestNewResponse(t *testing.T) {
	t.Parallel()
	req := NewRequest(&ConsumerListRequest{Group: "CG"}, nil)
	req.Opaque, req.Encoding = 7, EncodingBinary
	resp := NewResponse(req, RespSystemError, "no consumer")
	want := &Command{
		Code: 1, Language: LanguageGo, Version: 409, Opaque: 7, Flag: FlagResponse, Remark: "no consumer", Ext: Fields{}, Encoding: EncodingBinary,
	}
	if !reflect.DeepEqual(resp, want) || !resp.IsResponse() || resp.IsOneway() {
		t.Errorf("%+v, want %+v", resp, want)
	}
	if req.RequestCode() != ReqGetConsumerList || req.Ext.Get("consumerGroup") != "CG" || req.Version != int32(OwnVersion) {
		t.Errorf("%+v", req)
	}
}

func TestNamesOfCodes(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		ReqPullMessage.String():      "PULL_MESSAGE",
		RequestCode(31999).String():  "31999",
		RespGoAway.String():          "GO_AWAY",
		ResponseCode(-1000).String(): "-1000",
		Version5_3_3.String():        "V5_3_3",
		Version(480).String():        "V480",
		OwnVersion.String():          "V4_9_8",
		EncodingBinary.String():      "ROCKETMQ",
		Encoding(3).String():         "unknown",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	// Each code that has a type has a name.
	for code := range RequestCode(1000) {
		if NewHeader(code) != nil && strings.Trim(code.String(), "0123456789") == "" {
			t.Errorf("code %d has a type but no name", code)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	f := Fields{{"a", "1"}, {"b", "2"}, {"a", "3"}}
	if v, ok := f.Lookup("a"); v != "3" || !ok {
		t.Errorf("a = %s, %t", v, ok)
	}
	if _, ok := f.Lookup("c"); ok || f.Get("c") != "" {
		t.Error("c was found")
	}
	f.Set("a", "4")
	f.Set("c", "5")
	if want := (Fields{{"a", "1"}, {"b", "2"}, {"a", "4"}, {"c", "5"}}); !reflect.DeepEqual(f, want) {
		t.Errorf("after Set: %v", f)
	}
	f.Delete("a")
	if want := (Fields{{"b", "2"}, {"c", "5"}}); !reflect.DeepEqual(f, want) {
		t.Errorf("after Delete: %v", f)
	}
	if Fields(nil).Map() != nil || len(Fields{}.Map()) != 0 {
		t.Error("Map of no fields")
	}
}

func TestDecodeFieldsErrors(t *testing.T) {
	t.Parallel()
	var h PullRequest
	err := DecodeFields(Fields{{"consumerGroup", "CG"}, {"topic", "T"}, {"queueId", "x"}, {"maxMsgBytes", "99999999999"}}, &h)
	if !errors.Is(err, ErrField) || !strings.Contains(err.Error(), `queueId has the bad value "x"`) || h.Group != "CG" || h.Topic != "T" {
		t.Errorf("%v, %+v", err, h)
	}
	var o PullResponse
	err = DecodeFields(Fields{{"suggestWhichBrokerId", "0"}, {"nextBeginOffset", "1"}, {"minOffset", "0"}, {"maxOffset", "1"}, {"topicSysFlag", strings.Repeat("9", 1000)}}, &o)
	if !errors.Is(err, ErrField) || len(err.Error()) > 150 {
		t.Errorf("%v", err)
	}
	if err := DecodeFields(make(Fields, maxFields+1), &o); !errors.Is(err, ErrField) {
		t.Errorf("too many: %v", err)
	}
	var s SendBackRequest
	if err := DecodeFields(Fields{{"offset", "1"}, {"group", "CG"}, {"delayLevel", "-1"}}, &s); err != nil || s.UnitMode {
		t.Errorf("a lenient field is missing: %v", err)
	}
	if got := (Opt[int32]{}).Or(5); got != 5 {
		t.Errorf("absent.Or(5) = %d", got)
	}
	if got := Some(int32(7)).Or(5); got != 7 {
		t.Errorf("Some(7).Or(5) = %d", got)
	}
	for text, want := range map[string]bool{"true": true, "TRUE": true, "false": false, "yes": false, "": false} {
		var r ResetOffsetRequest
		if err := DecodeFields(Fields{{"topic", "T"}, {"group", "G"}, {"timestamp", "1"}, {"isForce", text}}, &r); err != nil || r.Force != want {
			t.Errorf("bool %q: %t, %v", text, r.Force, err)
		}
	}
}
