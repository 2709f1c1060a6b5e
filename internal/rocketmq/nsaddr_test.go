package rocketmq

import (
	"slices"
	"strings"
	"testing"
)

func TestParseNameServers(t *testing.T) {
	tests := []struct {
		in   []string
		want []string
	}{
		{[]string{"mq-ns1:9876"}, []string{"mq-ns1:9876"}},
		{[]string{"a:1;b:2"}, []string{"a:1", "b:2"}},
		{[]string{"a:1,b:2"}, []string{"a:1", "b:2"}},
		{[]string{" a:1 ; b:2\t"}, []string{"a:1", "b:2"}},
		{[]string{"b:2", "a:1", "b:2"}, []string{"b:2", "a:1"}},
		{[]string{"10.0.0.1:9876", "[::1]:9876", "[2001:db8::1]:65535"}, []string{"10.0.0.1:9876", "[::1]:9876", "[2001:db8::1]:65535"}},
		{[]string{"mq_ns.example.com.:9876"}, []string{"mq_ns.example.com.:9876"}},
		{[]string{"http://mq-ns:9876"}, []string{"mq-ns:9876"}}, // as Java's and Go's clients read it
		{[]string{"http://a:1/;b:2"}, []string{"a:1", "b:2"}},
		{[]string{"http://jmenv.tbsite.net:8080/rocketmq/nsaddr"}, []string{"http://jmenv.tbsite.net:8080/rocketmq/nsaddr"}},
		{[]string{" https://list/nsaddr-unit?nofix=1 "}, []string{"https://list/nsaddr-unit?nofix=1"}},
	}
	for _, tt := range tests {
		got, err := ParseNameServers(tt.in...)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("ParseNameServers(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestParseNameServersRefuses(t *testing.T) {
	tests := map[string]string{ // input: what the error must name
		"":                                  "name server 1",
		"a:1,":                              "name server 2",
		",a:1":                              "name server 1",
		"a:1,,b:1":                          "name server 2",
		"[1:2:3]:9876":                      "1:2:3",
		"[1::2::3]:9876":                    "1::2::3",
		"[::1]":                             "port",
		"::1:9876":                          "port",
		"a:0":                               "1 to 65535",
		"a:65536":                           "1 to 65535",
		"a: 1":                              "blank",
		"a":                                 "port",
		":9876":                             "no host",
		"a b:1":                             "blank",
		"ftp://a:1/x":                       "scheme",
		"http://":                           "scheme",
		"http://a":                          "port",
		"https://a:1":                       "without its path",
		"http://a:1?x=1":                    "without its path",
		"http://u:p@a:1/x":                  "password",
		"http://a:1/x;b:2":                  "beside it",
		"http://MQ_INST_1_a.example.com:80": "namespace",
		"[10.0.0.1]:9876":                   "IPv6",
		"10.0.0.256:9876":                   "IPv4",
		"10.0.1:9876":                       "IPv4",
		"-a:1":                              "host name",
		"a..b:1":                            "host name",
		"ok:1;10.0.0.1:9x76":                "name server 2",
	}
	for in, want := range tests {
		if got, err := ParseNameServers(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseNameServers(%q) = %q, %v; the error should say %q", in, got, err, want)
		}
	}
	if _, err := ParseNameServers(); err == nil {
		t.Error("no address at all was accepted")
	}
}
