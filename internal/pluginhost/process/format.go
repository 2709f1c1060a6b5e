package process

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strings"
)

// checkFormat recognizes what the kernel would refuse with a bare "exec format error".
func (e *Executable) checkFormat() error {
	head := make([]byte, 256)
	n, err := e.file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading %s: %w", e.Path, err)
	}
	head = head[:n]
	switch {
	case n == 0:
		return fmt.Errorf("%s is empty; install the plugin's binary again", e.Path)
	case strings.HasPrefix(string(head), "#!"):
		e.Script = true
		return checkInterpreter(e.Path, string(head))
	case strings.HasPrefix(string(head), elf.ELFMAG):
		return e.checkELF()
	}
	return fmt.Errorf("%s is neither a Linux program nor a script with a #! line (it starts with %q); "+
		"install a build for linux/%s", e.Path, head[:min(n, 8)], goruntime.GOARCH)
}

func checkInterpreter(path, head string) error {
	line, _, _ := strings.Cut(strings.TrimPrefix(head, "#!"), "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return fmt.Errorf("%s has an empty #! line; name its interpreter there", path)
	}
	if _, err := os.Stat(fields[0]); err != nil {
		return fmt.Errorf("%s needs the interpreter %s, which is not installed: %w", path, fields[0], err)
	}
	return nil
}

func (e *Executable) checkELF() error {
	f, err := elf.NewFile(e.file)
	if err != nil {
		return fmt.Errorf("%s is a damaged program (%w); install it again", e.Path, err)
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if want, known := machines[goruntime.GOARCH]; known && f.Machine != want {
		return fmt.Errorf("%s is built for %s, this machine is linux/%s; install that build", e.Path, f.Machine, goruntime.GOARCH)
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, min(p.Filesz, 4096))
		if _, err := p.ReadAt(name, 0); err != nil {
			return fmt.Errorf("reading the loader's name in %s: %w", e.Path, err)
		}
		loader := strings.TrimRight(string(name), "\x00")
		if _, err := os.Stat(loader); err != nil {
			return fmt.Errorf("%s needs the loader %s, which is not installed (built for another libc?): %w", e.Path, loader, err)
		}
	}
	return nil
}
