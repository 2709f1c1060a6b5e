// Package sdk is what the author of a streamd plugin imports. It uses the standard library only.
package sdk
