package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"
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

// lock serializes over processes what fills a folder of the cache: test packages run side by side.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil // the lock goes with the file
}

func base(version string) string { return filepath.Join(Root(), ".cache", "rocketmq", version) }

// Lib returns the folder with the jars of a RocketMQ version, fetched by Maven once into .cache/rocketmq. One process fetches at a
// time, whatever the version: they all fill Maven's one repository, in which Maven does not expect company.
func Lib(ctx context.Context, version string) (string, error) {
	lib, done := filepath.Join(base(version), "lib"), filepath.Join(base(version), "complete")
	if _, err := os.Stat(done); err == nil {
		return lib, nil
	}
	unlock, err := lock(filepath.Dir(base(version)))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(done); err == nil { // somebody else has fetched it
		return lib, nil
	}
	for try := 1; ; try++ {
		out, err := fetch(ctx, version, lib, try)
		if err == nil {
			return lib, os.WriteFile(done, []byte(version+"\n"), 0o600)
		}
		if errors.Is(err, exec.ErrNotFound) {
			return "", fmt.Errorf("fetching RocketMQ %s needs Maven: install a JDK (17 works) and Maven: %w", version, err)
		}
		if try == 3 || ctx.Err() != nil {
			return "", fmt.Errorf("fetching RocketMQ %s by Maven: %w\n%s", version, err, out)
		}
	}
}

// fetch lets Maven copy the jars. What a try before got stays in Maven's repository, so that another one only takes what is missing;
// it asks again for what it did not get, which Maven else remembers as not there.
func fetch(ctx context.Context, version, lib string, try int) (out []byte, err error) {
	if err := os.RemoveAll(lib); err != nil { // a copy may have been cut short
		return nil, fmt.Errorf("making room for the jars: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	args := []string{
		"-Dmaven.wagon.rto=60000", "-Daether.connector.requestTimeout=60000", // it waits half an hour for a silent server
		"-q", "-B", "-f", filepath.Join(Root(), "test", "interop", "jars", "pom.xml"), "-Drocketmq.version=" + version,
		"dependency:copy-dependencies", "-DoutputDirectory=" + lib,
	}
	if try > 1 {
		args = append(args, "-U")
	}
	cmd := exec.CommandContext(ctx, "mvn", args...)
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

// classes compiles the Java peers against a version's jars, once for each state of their sources, into a folder of its own:
// several checkouts may share the cache. Those in since5 use what 4.9 has not.
func classes(ctx context.Context, version string) (string, error) {
	lib, err := Lib(ctx, version)
	if err != nil {
		return "", err
	}
	unlock, err := lock(base(version))
	if err != nil {
		return "", err
	}
	defer unlock()
	sources, err := filepath.Glob(filepath.Join(Root(), "test", "interop", "java", "*.java"))
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(version, "4.") {
		more, err := filepath.Glob(filepath.Join(Root(), "test", "interop", "java", "since5", "*.java"))
		if err != nil {
			return "", err
		}
		sources = append(sources, more...)
	}
	sum, err := sumOf(sources)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base(version), "classes-"+sum[:16])
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	args := append([]string{"-nowarn", "-d", dir, "-cp", filepath.Join(lib, "*")}, sources...)
	if out, err := exec.CommandContext(ctx, "javac", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the Java peers: %w\n%s", err, out)
	}
	return dir, os.WriteFile(done, []byte(sum), 0o600)
}

func sumOf(files []string) (string, error) {
	h := sha256.New()
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.Base(f), len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
