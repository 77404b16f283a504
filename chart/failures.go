// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// chartError is the error of a chart that breaks a rule or does not render; only another chart or other values help.
func chartError(format string, args ...any) *Error {
	return &Error{Reason: shipper.ChartError, Message: fmt.Sprintf(format, args...)}
}

// wrongDeployments is the error of a chart that does not have exactly one Deployment.
func wrongDeployments(format string, args ...any) *Error {
	return &Error{Reason: shipper.WrongChartDeployments, Message: fmt.Sprintf(format, args...)}
}
