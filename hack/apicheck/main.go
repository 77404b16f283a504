// SPDX-License-Identifier: Apache-2.0

// Command apicheck compares the API and the command line of this tree with those of an earlier commit, and fails for what breaks a
// manifest, a client or a script that works with the earlier one: a field, value, version or flag that is gone, a type that changed, a
// field that became required, a bound that became tighter.
//
//	go run ./hack/apicheck -base v0.1.0
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

func main() {
	base := flag.String("base", "", "`commit` or tag to compare with")
	flag.Parse()
	faults, err := compare(context.Background(), *base)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apicheck:", err)
		os.Exit(1)
	}
	for _, f := range faults {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		fmt.Fprintf(os.Stderr, "apicheck: %d changes break what works with %s: keep the old form\n",
			len(faults), *base)
		os.Exit(1)
	}
	fmt.Printf("nothing that works with %s breaks\n", *base)
}

// compare returns what breaks between a commit and the tree.
func compare(ctx context.Context, base string) ([]string, error) {
	names, err := git(ctx, "ls-tree", "--name-only", base, "manifests/crd/")
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, name := range strings.Fields(names) {
		if filepath.Base(name) == "kustomization.yaml" {
			continue
		}
		old, err := git(ctx, "show", base+":"+name)
		if err != nil {
			return nil, err
		}
		now, err := os.ReadFile(name)
		if err != nil {
			faults = append(faults, name+": is gone")
			continue
		}
		found, err := crdBreaks([]byte(old), now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		faults = append(faults, found...)
	}
	old, err := git(ctx, "show", base+":docs/cli.md")
	if err != nil {
		return nil, err
	}
	now, err := os.ReadFile("docs/cli.md")
	if err != nil {
		return nil, err
	}
	faults = append(faults, flagBreaks(old, string(now))...)
	sort.Strings(faults)
	return faults, nil
}

// git returns what a command of git prints.
func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
