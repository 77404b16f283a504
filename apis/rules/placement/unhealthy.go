// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"time"
)

// The default and the bounds of --unhealthy-after, which both programs have: Input.UnhealthyAfter.
const (
	DefaultUnhealthyAfter = 5 * time.Minute
	MinUnhealthyAfter     = 30 * time.Second
	MaxUnhealthyAfter     = 24 * time.Hour
)

// CheckUnhealthyAfter returns an error that names the bounds if d is not within them.
func CheckUnhealthyAfter(d time.Duration) error {
	if d < MinUnhealthyAfter || d > MaxUnhealthyAfter {
		return fmt.Errorf("--unhealthy-after=%s: must be from %s to %s", d, MinUnhealthyAfter, MaxUnhealthyAfter)
	}
	return nil
}
