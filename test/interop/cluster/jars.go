package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"sync"
)

// The versions the tests speak to. Main is tested in full.
const (
	Main   = "5.3.3"
	Old    = "4.9.7"
	Newest = "5.5.0"
)

// Root is the repository's folder.
func Root() string {
	_, file, _, _ := goruntime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// jars serializes Maven: two runs would write one folder.
var jars sync.Mutex

// Lib returns the folder with the jars of a RocketMQ version, fetched by Maven once into .cache/rocketmq.
func Lib(ctx context.Context, version string) (string, error) {
	jars.Lock()
	defer jars.Unlock()
	base := filepath.Join(Root(), ".cache", "rocketmq", version)
	lib, done := filepath.Join(base, "lib"), filepath.Join(base, "complete")
	if _, err := os.Stat(done); err == nil {
		return lib, nil
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", filepath.Join(Root(), "test", "interop", "jars", "pom.xml"),
		"-Drocketmq.version="+version, "dependency:copy-dependencies", "-DoutputDirectory="+lib)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("Maven is needed to fetch RocketMQ %s: install a JDK (17 works) and Maven: %w", version, err)
	}
	if err != nil {
		return "", fmt.Errorf("fetching RocketMQ %s by Maven: %w\n%s", version, err, out)
	}
	return lib, os.WriteFile(done, []byte(version+"\n"), 0o600)
}

// classes compiles the Java peers against a version's jars, once per process and version.
func classes(ctx context.Context, version string) (string, error) {
	lib, err := Lib(ctx, version)
	if err != nil {
		return "", err
	}
	jars.Lock()
	defer jars.Unlock()
	dir := filepath.Join(Root(), ".cache", "rocketmq", version, fmt.Sprintf("classes-%d", os.Getpid()))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	sources, err := filepath.Glob(filepath.Join(Root(), "test", "interop", "java", "*.java"))
	if err != nil {
		return "", err
	}
	args := append([]string{"-nowarn", "-d", dir, "-cp", filepath.Join(lib, "*")}, sources...)
	if out, err := exec.CommandContext(ctx, "javac", args...).CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("compiling the Java peers: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}
