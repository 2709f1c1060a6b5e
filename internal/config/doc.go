// Package config turns files, environment and flags into one typed, immutable Config.
//
// Promises:
//   - One typed struct lists every key; the JSON Schema, the reference page, the defaults and the environment names are
//     read off it, so they cannot drift.
//   - Every fault is reported, all at once, as "file:line:col: what; try ...", also inside a plugin's config, in a second
//     file, in --set and in an environment variable.
//   - ${env:X} and ${file:PATH} are resolved after parsing, in scalars only: a value cannot change the structure.
//   - What came from there, and what the schema calls secret, is never printed: neither by Print nor in an error.
//   - A plugin's config keeps its case, dots, integers and timestamps as written and becomes JSON; the position of every
//     value is kept, so that a diagnostic at a JSON pointer can be shown at its line.
//   - A Config is never changed after Load returned it. Readers on many goroutines need no lock.
//
// Path: files → nodes with positions (parse) → merge, overlay → interpolation → layers (viper: flags > --set >
// environment > files > defaults) → schema check → cross references → typed struct. Nothing outside this package, and
// nothing after Load, holds a viper. The package starts no goroutines.
package config

//go:generate go test -run TestReferenceIsCurrent . -update-reference
