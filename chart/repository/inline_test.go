// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/test/charts"
)

func TestAnArchiveIsLoadedFromTheChartItself(t *testing.T) {
	s := newEnv(t)
	archive, err := charts.Get("nginx", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	of := shipper.Chart{Name: "nginx", Version: "0.0.1", Archive: base64.StdEncoding.EncodeToString(archive.Bytes)}
	for _, digest := range []string{"", archive.Digest, archive.Digest} {
		if loaded, err := s.Load(t.Context(), "default", of, digest); err != nil || loaded.Digest() != archive.Digest {
			t.Errorf("by %q: %v", digest, err)
		}
	}
	if _, err := s.Load(t.Context(), "default", of, strings.Repeat("ab", 32)); !errors.Is(err, chart.ErrDigest) {
		t.Errorf("with another digest: %v", err)
	}
	of.Version = "0.0.2"
	_, err = s.Load(t.Context(), "default", of, archive.Digest)
	if read(t, err).Message != `the archive of chart "nginx" 0.0.2 holds version 0.0.1` {
		t.Errorf("as another version: %v", err)
	}
	if n := s.repo.Requests(""); n > 0 {
		t.Errorf("the repository was asked %d times", n)
	}
}
