package pluginhost

import "io"

// stdio carries what a Go plugin prints after its handshake. go-plugin's server replaces os.Stdout and os.Stderr there and
// sends what is written to them over gRPC; the real descriptors carry only what bypasses those variables.
type stdio struct{ stdout, stderr *io.PipeWriter }

// newStdio starts the readers; close ends them.
func (g *generation) newStdio() stdio {
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	g.host.work.Go(func() { _ = g.pump.Stdout(outR) }) // in memory: ends with the writer
	g.host.work.Go(func() { _ = g.pump.Stderr(errR) })
	return stdio{outW, errW}
}

func (s stdio) close() {
	_ = s.stdout.Close() // in memory: never fails
	_ = s.stderr.Close()
}
