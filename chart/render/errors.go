// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// chartError is the error of a chart that breaks a rule or does not render; only another chart or other values help.
func chartError(format string, args ...any) *chart.Error {
	return &chart.Error{Reason: shipper.ChartError, Message: fmt.Sprintf(format, args...)}
}

// wrongDeployments is the error of a chart that does not have exactly one Deployment.
func wrongDeployments(format string, args ...any) *chart.Error {
	return &chart.Error{Reason: shipper.WrongChartDeployments, Message: fmt.Sprintf(format, args...)}
}
