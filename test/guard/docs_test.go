// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/test/fleet"
)

// consoles are the parts of a page that show a command and what it says.
var consoles = regexp.MustCompile("(?ms)^```console\n\\$ (.*?)^```")

// documented is the Release that the page speaks of; the test has another hash, and the chart another name.
const documented = "web-6f19aa85-0"

// TestTheCommandsOfThePage runs every command of docs/guard.md in its order, and compares what it says.
func TestTheCommandsOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	found := consoles.FindAllSubmatch(text, -1)
	if n := strings.Count(string(text), "```console"); len(found) != n || n < 6 {
		t.Fatalf("%d commands were found, and %d begin", len(found), n)
	}
	s := begin(t, "shop")
	release := s.rolledOut()
	s.Must("granting rights", world.cluster.Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "jdoe"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "jdoe"}},
	}))
	// The first command shows a guard that is not there yet.
	if out, err := shipperctl(s.Ctx, "clusters", "join", "--guard=false"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	real := strings.NewReplacer(documented+"-nginx", release+"-test-nginx", documented, release)
	for i, match := range found {
		shown := real.Replace(string(match[1]))
		command, want, _ := strings.Cut(shown, "\n")
		for unbalanced(command) {
			var more string
			more, want, _ = strings.Cut(want, "\n")
			command += "\n" + more
		}
		got := s.shell(command)
		if i == 0 {
			s.Must("waiting", holds(s.Ctx, true))
		}
		if !says(got, want) {
			t.Errorf("$ %s\n%s\nand the page has\n%s", command, got, want)
		}
	}
	s.Must("waiting", holds(s.Ctx, false))
	if out, err := shipperctl(s.Ctx, "clusters", "join", "--guard"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.Must("waiting", holds(s.Ctx, true))
}

// unbalanced reports whether a command goes on in the next line: a quote is open.
func unbalanced(command string) bool { return strings.Count(command, "'")%2 == 1 }

// shell runs a command of the page where shipperctl and kubectl are known.
func (s *fixture) shell(command string) string {
	s.Helper()
	kubectl, err := fleet.Kubectl()
	s.Must("finding kubectl", err)
	cmd := exec.CommandContext(s.Ctx, "bash", "-c", command)
	cmd.Dir = world.Dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.Fleet.Kubeconfig,
		"PATH="+world.Dir+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // some are refused, which they say
	return out.String()
}

// says reports whether an output has what the page shows, in its order, whatever is between where the page has dots. Lines may
// be broken elsewhere.
func says(output, shown string) bool {
	rest := strings.Join(strings.Fields(output), " ")
	for part := range strings.SplitSeq("\n"+shown, "\n...") {
		part = strings.Join(strings.Fields(part), " ")
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return true
}
