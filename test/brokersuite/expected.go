package brokersuite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

//go:embed testdata
var testdata embed.FS

// Expected is what a real RocketMQ 5.3.3 answers in a scenario.
func Expected(scenario string) (*Transcript, error) { return load("real", scenario) }

// ExpectedEmbedded is what the embedded broker answers: the same, but for the steps that Differences lists.
func ExpectedEmbedded(scenario string) (*Transcript, error) {
	all, err := load("real", scenario)
	if err != nil {
		return nil, err
	}
	own, err := load("embedded", scenario)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for _, s := range own.steps {
		i := slices.IndexFunc(all.steps, func(o step) bool { return o.name == s.name })
		if i < 0 {
			return nil, fmt.Errorf("testdata/embedded/%s.txt has the step %q, which testdata/real has not", scenario, s.name)
		}
		all.steps[i] = s
	}
	return all, nil
}

func load(kind, scenario string) (*Transcript, error) {
	text, err := testdata.ReadFile("testdata/" + kind + "/" + scenario + ".txt")
	if err != nil {
		return nil, err
	}
	t, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("testdata/%s/%s.txt: %w", kind, scenario, err)
	}
	return t, nil
}

// OwnSteps are the steps of a scenario in which the embedded broker answers otherwise.
func OwnSteps(scenario string) (names []string) {
	own, err := load("embedded", scenario)
	if err != nil {
		return nil
	}
	for _, s := range own.steps {
		names = append(names, s.name)
	}
	return names
}
