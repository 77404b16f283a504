// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// recipe is what a Dockerfile says about the image.
type recipe struct {
	script string   // that builds, in the source tree
	built  string   // the folder it builds into
	names  []string // of the programs
	copies []step
	labels map[string]string
	user   string
}

// step is a COPY from the build stage, one layer of the image.
type step struct {
	files  []file
	source string // the line of the Dockerfile
}

// file is where a file comes from and where it goes.
type file struct{ from, to string }

// buildLine is the last RUN of the build stage.
var buildLine = regexp.MustCompile(`^GOOS=\$TARGETOS GOARCH=\$TARGETARCH (hack/\S+) (/\S+)((?: [a-z-]+)+)$`)

// read reads a Dockerfile of two stages, one that builds and one that takes files from there. An instruction that is not
// understood is an error.
func read(in io.Reader, args map[string]string) (*recipe, error) {
	parsed, err := parser.Parse(in)
	if err != nil {
		return nil, fmt.Errorf("parsing the Dockerfile: %w", err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, fmt.Errorf("parsing the Dockerfile: %w", err)
	}
	if len(stages) != 2 || stages[0].Name != "build" || stages[1].BaseName != "scratch" {
		return nil, errors.New("the Dockerfile has to have two stages: one called build, and one from scratch")
	}
	r := &recipe{labels: map[string]string{}}
	if err := r.readBuild(stages[0].Commands); err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, command := range stages[1].Commands {
		if err := r.follow(command, args, known); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// readBuild finds out what the build stage builds.
func (r *recipe) readBuild(commands []instructions.Command) error {
	for _, command := range slices.Backward(commands) {
		run, ok := command.(*instructions.RunCommand)
		if !ok {
			continue
		}
		parts := buildLine.FindStringSubmatch(strings.Join(run.CmdLine, " "))
		if parts == nil {
			return fmt.Errorf("the last RUN of the build stage is not understood: %s", run)
		}
		r.script, r.built, r.names = parts[1], parts[2], strings.Fields(parts[3])
		return nil
	}
	return errors.New("the build stage runs nothing")
}

// follow adds what an instruction of the last stage says. known are the arguments that have been declared.
func (r *recipe) follow(command instructions.Command, args, known map[string]string) error {
	if e, ok := command.(instructions.SupportsSingleWordExpansion); ok {
		if err := e.Expand(expander(known)); err != nil {
			return fmt.Errorf("expanding %v: %w", command, err)
		}
	}
	switch c := command.(type) {
	case *instructions.ArgCommand:
		for _, arg := range c.Args {
			known[arg.Key] = arg.ValueString()
			if value, given := args[arg.Key]; given {
				known[arg.Key] = value
			}
		}
	case *instructions.LabelCommand:
		for _, label := range c.Labels {
			r.labels[label.Key] = label.Value
		}
	case *instructions.UserCommand:
		r.user = c.User
	case *instructions.CopyCommand:
		if c.From != "build" || c.Chown != "" || c.Chmod != "" || c.Link || c.Parents || len(c.ExcludePatterns)+len(c.SourceContents) > 0 {
			return fmt.Errorf("not understood, only files of the stage build are: %v", c)
		}
		r.copies = append(r.copies, step{files: filesOf(c), source: c.String()})
	default:
		return fmt.Errorf("not understood in the last stage: %v", command)
	}
	return nil
}

// filesOf are the files that a COPY without wildcards copies.
func filesOf(c *instructions.CopyCommand) []file {
	var out []file
	for _, from := range c.SourcePaths {
		to := c.DestPath
		if strings.HasSuffix(to, "/") {
			to += from[strings.LastIndex(from, "/")+1:]
		}
		out = append(out, file{from: from, to: to})
	}
	return out
}

// expander puts arguments where a word has $NAME, and takes quotes away.
func expander(known map[string]string) instructions.SingleWordExpander {
	var set []string
	for name, value := range known {
		set = append(set, name+"="+value)
	}
	lex := shell.NewLex('\\')
	return func(word string) (string, error) {
		out, _, err := lex.ProcessWord(word, shell.EnvsFromSlice(set))
		return out, err
	}
}
