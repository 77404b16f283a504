// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"testing"

	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/test/charts"
)

// failure is the part of an error that callers see.
type failure struct {
	Reason, Message string
	Retry           bool
}

func read(t *testing.T, err error) failure {
	t.Helper()
	e, ok := errors.AsType[*chart.Error](err)
	if !ok {
		t.Fatalf("%#v is no *chart.Error", err)
	}
	return failure{Reason: e.Reason, Message: err.Error(), Retry: e.Retry}
}

func archive(t *testing.T, name, version string) charts.Archive {
	t.Helper()
	a, err := charts.Get(name, version)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
