// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/test/await"
)

// victimDir is the environment variable that makes this test binary start a fleet in a folder and wait until it is killed.
const victimDir = "FLEET_TEST_VICTIM_DIR"

// beVictim starts a fleet, prints its folder and waits to be killed.
func beVictim(dir string) int {
	f, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(strings.TrimPrefix(f.Management.Config.Host, "https://"))
	fmt.Println(f.stores[0].port.Address())
	time.Sleep(time.Minute)
	return 1
}

// processesOf returns the command lines of the processes that mention a folder.
func processesOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skipf("cannot see the processes of this machine: %v", err)
	}
	var out []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), folder) {
			out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

func TestNothingOutlivesAKilledTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimDir+"="+dir)
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for lines := bufio.NewScanner(out); len(addresses) < 2 && lines.Scan(); {
		addresses = append(addresses, lines.Text())
	}
	running := processesOf(t, dir)
	if len(running) != 5 {
		t.Errorf("%d processes run for a management cluster, want 5:\n%s", len(running), strings.Join(running, "\n"))
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // it was killed, which is an error
	await.Eventually(t, "all processes to end", func(context.Context) error {
		if running := processesOf(t, dir); len(running) > 0 {
			return errors.New(strings.Join(running, "\n"))
		}
		return nil
	})
	for _, address := range addresses {
		await.Eventually(t, "port "+address+" to be free", func(context.Context) error {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			return l.Close()
		})
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Stop(); err != nil {
		t.Error(err)
	}
	if running := processesOf(t, f.Dir); len(running) > 0 {
		t.Errorf("still running:\n%s", strings.Join(running, "\n"))
	}
	if _, err := os.Stat(f.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the fleet's folder: %v, want it gone", err)
	}
	if err := f.Stop(); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}

// assets creates a folder of the real programs, one of which is replaced by a script.
func assets(t *testing.T, program, script string) string {
	t.Helper()
	folder := t.TempDir()
	entries, err := os.ReadDir(shared.programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(shared.programs, entry.Name()), filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(folder, program)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, program), "#!/bin/sh\n"+script)
	return folder
}

// write writes an executable file.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedStartSaysWhy(t *testing.T) {
	for program, want := range map[string][]string{
		"etcd":                    {"etcd ended: exit status 3", "etcd.log", "no water under the keel"},
		"kube-apiserver":          {"mgmt-kube-apiserver ended: exit status 3", "no water under the keel"},
		"kube-controller-manager": {"mgmt-kube-controller-manager ended: exit status 3", "no water under the keel"},
	} {
		t.Run(program, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			t.Setenv(managementVersion, "") // it would take precedence
			t.Setenv("KUBEBUILDER_ASSETS", assets(t, program, "echo no water under the keel >&2\nexit 3\n"))
			f, err := Start(t.Context(), Options{})
			if err == nil {
				t.Fatal("it started", f.Stop())
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q:\n%v", part, err)
				}
			}
			if rest, err := filepath.Glob(filepath.Join(os.TempDir(), temporaryName+"*", "logs")); len(rest) > 0 {
				t.Errorf("left behind: %v %v", rest, err)
			}
		})
	}
}

func TestAStartEndsWithItsContext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(managementVersion, "") // it would take precedence
	t.Setenv("KUBEBUILDER_ASSETS", assets(t, "kube-apiserver", "echo still waiting for the tide\nexec sleep 60\n"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := Start(ctx, Options{})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still waiting for the tide") {
		t.Errorf("error is %v, want the deadline and the log of the API server", err)
	}
}

func TestNamesOfClusters(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		names []string
		want  string
	}{
		"two regions":                     {[]string{"eu-west-1", "us-east-1"}, ""},
		"the management cluster's":        {[]string{"mgmt"}, `application cluster "mgmt": the name is taken`},
		"twice the same":                  {[]string{"a", "a"}, `application cluster "a": the name is taken`},
		"one that leads out of a folder":  {[]string{"../a"}, `application cluster "../a": not a DNS label of at most 52 characters`},
		"the empty one":                   {[]string{""}, `application cluster "": not a DNS label of at most 52 characters`},
		"one that ends in a hyphen":       {[]string{"a-"}, `application cluster "a-": not a DNS label of at most 52 characters`},
		"one with letters of the capital": {[]string{"A"}, `application cluster "A": not a DNS label of at most 52 characters`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := (Options{Applications: tc.names}).validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error("error (-want +got):\n" + diff)
			}
		})
	}
}

func TestFoldersOfTheDeadAreSwept(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	alive, lock, err := temporary()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	dead, lock, err := temporary()
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	starting := filepath.Join(os.TempDir(), temporaryName+"starting")
	if err := os.Mkdir(starting, 0o755); err != nil {
		t.Fatal(err)
	}
	sweep()
	var got []bool
	for _, folder := range []string{alive, starting, dead} {
		_, err := os.Stat(folder)
		got = append(got, err == nil)
	}
	if diff := cmp.Diff([]bool{true, true, false}, got); diff != "" {
		t.Error("folders of a fleet that lives, of one that starts and of a dead one are there (-want +got):\n" + diff)
	}
}
