// Package serve runs a plugin: what a plugin's main calls.
package serve
