package sdktest_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/hashicorp/go-plugin.(*grpcStdioClient).Run")) // ends some time after Kill
}
