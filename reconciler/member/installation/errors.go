// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"errors"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/retry"
)

// problem is an error with the reason for the condition and what to do about it.
type problem struct {
	reason  string
	action  retry.Action
	message string
}

// Error is the message.
func (p *problem) Error() string {
	return p.message
}

// Classify implements retry.Classified.
func (p *problem) Classify() (reason string, remedy retry.Action) {
	return p.reason, p.action
}

// conflict is checked again periodically: an object of another owner is in no cache, so no event reports its deletion.
func conflict(format string, args ...any) error {
	return &problem{shipper.ObjectConflict, retry.Retry, fmt.Sprintf(format, args...)}
}

func broken(format string, args ...any) error {
	return &problem{shipper.ChartError, retry.Wait, fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) error {
	return &problem{shipper.InProgress, retry.Recheck, fmt.Sprintf(format, args...)}
}

// ofChart gives an error of the chart room its reason and remedy.
func ofChart(err error) error {
	var known *chart.Error
	if !errors.As(err, &known) {
		return err
	}
	remedy := retry.Wait
	if known.Retry {
		remedy = retry.Retry
	}
	return &problem{known.Reason, remedy, known.Message}
}
