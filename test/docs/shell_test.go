// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mark is printed after a command's output; the exit status follows.
const mark = "\x01the command has ended\x01"

// shell is a bash with a terminal of 80 columns, which keeps its folder and environment between commands.
type shell struct {
	in    io.WriteCloser
	lines chan string
	end   func()
}

// withoutMake removes the variables by which make detects that another make called it.
func withoutMake(environment []string) []string {
	return slices.DeleteFunc(environment, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"}, name)
	})
}

// openShell starts a shell in a folder.
func openShell(ctx context.Context, folder string, environment ...string) (*shell, error) {
	master, slave, err := terminal()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	bash := exec.CommandContext(ctx, "bash", "--norc", "--noprofile")
	bash.Dir = folder
	bash.Env = append(withoutMake(os.Environ()), environment...)
	bash.Stdout, bash.Stderr = slave, slave
	in, err := bash.StdinPipe()
	if err == nil {
		err = bash.Start()
	}
	slave.Close()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting a shell: %w", err)
	}
	s := &shell{in: in, lines: make(chan string)}
	s.end = func() {
		cancel()
		in.Close()
		_ = bash.Wait() // it was killed
		master.Close()
	}
	go func() {
		defer close(s.lines)
		scanner := bufio.NewScanner(master)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			s.lines <- strings.ReplaceAll(scanner.Text(), "\r", "")
		}
	}()
	return s, nil
}

// watchEnded matches a line that kubectl sometimes logs when a wait has succeeded and its watch is cancelled. It is not
// output.
var watchEnded = regexp.MustCompile(`^I[0-9]{4} .* reflector\.go:[0-9]+\] "Warning: watch ended with error" .*context canceled`)

// run runs a command without input, and returns its output and exit status.
func (s *shell) run(command string, patience time.Duration) (said string, status int, err error) {
	if _, err := fmt.Fprintf(s.in, "eval %s </dev/null\nprintf '%%s%%d\\n' '%s' \"$?\"\n", quoted(command), mark); err != nil {
		return "", 0, fmt.Errorf("typing a command: %w", err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var out strings.Builder
	for {
		select {
		case line, open := <-s.lines:
			if !open {
				return out.String(), 0, fmt.Errorf("the shell has ended")
			}
			if watchEnded.MatchString(line) {
				continue
			}
			before, after, ended := strings.Cut(line, mark)
			out.WriteString(before)
			if ended {
				status, err := strconv.Atoi(after)
				return out.String(), status, err
			}
			out.WriteString("\n")
		case <-timer.C:
			return out.String(), 0, fmt.Errorf("it has not ended after %s", patience)
		}
	}
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// terminal opens a terminal of 80 columns: the reader's side, and that of programs.
func terminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 80})
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	return master, slave, nil
}

func TestOnlyTheEndOfAWatchIsNoAnswer(t *testing.T) {
	const logged = `I1122 06:54:45.535804    4609 reflector.go:664] "Warning: watch ended with error" reflector="reflector.go:343" ` +
		`type="*unstructured.Unstructured" err="an error on the server (\"unable to decode an event from the watch stream: context canceled\")"`
	for line, want := range map[string]bool{
		logged: true,
		"cluster.shipper.booking.com/eu-west-1 condition met":                                                          false,
		strings.ReplaceAll(logged, "context canceled", "unexpected EOF"):                                               false,
		"error: timed out waiting for the condition on clusters/eu-west-1":                                             false,
		`E1122 06:54:45.535804    4609 memcache.go:265] "Unhandled Error" err="couldn't get current server API group"`: false,
	} {
		if got := watchEnded.MatchString(line); got != want {
			t.Errorf("%v of %s", got, line)
		}
	}
}
