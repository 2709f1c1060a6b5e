package pluginhost

import "github.com/hashicorp/go-hclog"

// silentLogger is what go-plugin gets: what it would say (an exit, a broken stdio stream) the host says better.
func silentLogger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: hclog.DefaultOutput})
}
