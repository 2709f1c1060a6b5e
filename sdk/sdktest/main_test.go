package sdktest_test

import (
	"log"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sdktest")
	if err != nil {
		log.Fatal(err)
	}
	built.dir = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { _ = os.RemoveAll(dir); os.Exit(code) }),
		goleak.IgnoreAnyFunction("github.com/hashicorp/go-plugin.(*grpcStdioClient).Run")) // ends some time after Kill
}
