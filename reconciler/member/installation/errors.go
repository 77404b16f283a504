// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"errors"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fleet"
)

// problem is an error with the reason for the condition and what to do about it.
type problem struct {
	reason  string
	action  fleet.Action
	message string
}

// Error is the message.
func (p *problem) Error() string {
	return p.message
}

// Classify is what fleet.Classify asks for.
func (p *problem) Classify() (reason string, remedy fleet.Action) {
	return p.reason, p.action
}

// conflict is checked again periodically: an object of another owner is in no cache, so no event reports its deletion.
func conflict(format string, args ...any) error {
	return &problem{shipper.ObjectConflict, fleet.Retry, fmt.Sprintf(format, args...)}
}

func broken(format string, args ...any) error {
	return &problem{shipper.ChartError, fleet.Wait, fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) error {
	return &problem{shipper.InProgress, fleet.Recheck, fmt.Sprintf(format, args...)}
}

// ofChart gives an error of the chart room its reason and remedy.
func ofChart(err error) error {
	var known *chart.Error
	if !errors.As(err, &known) {
		return err
	}
	remedy := fleet.Wait
	if known.Retry {
		remedy = fleet.Retry
	}
	return &problem{known.Reason, remedy, known.Message}
}
