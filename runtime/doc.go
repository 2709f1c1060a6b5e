// Package runtime is the engine: it joins groups, divides queues, pulls, hands messages to handlers and settles them.
package runtime
