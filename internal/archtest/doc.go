// Package archtest holds the rules of docs/architecture.md that are checked by a test: who may import whom, and a few
// habits a linter does not see. Each ban carries its reason.
package archtest
