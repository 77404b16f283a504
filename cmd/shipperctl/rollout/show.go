// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// show shows the rollout of one Application.
type show struct {
	*options
	client client.WithWatch
	key    client.ObjectKey
	out    io.Writer
	format cli.Format
	// last is what was printed last.
	last string
}

// observe makes a picture of the rollout as it is.
func (s *show) observe(ctx context.Context) (*View, error) {
	o, err := observe(ctx, s.client, s.key)
	if err != nil {
		return nil, err
	}
	return viewOf(o, s.clock.Now()), nil
}

// text is a picture as it is printed.
func (s *show) text(p *View, now time.Time) (string, error) {
	width, isTerminal := screen.Of(s.out)
	switch {
	case s.format == cli.JSON: // one line for each picture, as programs read a stream
		raw, err := json.Marshal(p)
		if err != nil {
			return "", fmt.Errorf("writing JSON: %w", err)
		}
		return string(raw) + "\n", nil
	case s.format == cli.YAML:
		raw, err := yaml.Marshal(p)
		if err != nil {
			return "", fmt.Errorf("writing YAML: %w", err)
		}
		if s.last != "" {
			return "---\n" + string(raw), nil
		}
		return string(raw), nil
	case isTerminal:
		return p.Screen(width, now), nil
	}
	return p.Lines(now), nil
}

// print prints a picture, unless that has been printed.
func (s *show) print(p *View) error {
	text, err := s.text(p, s.clock.Now())
	if err != nil || text == s.last {
		return err
	}
	s.last = text
	if _, err := io.WriteString(s.out, text); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// over reports whether there is nothing more to come.
func (p *View) over() bool { return p.Complete && len(p.Waiting) == 0 && len(p.Deleting) == 0 }
