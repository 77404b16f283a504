// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnAddressOfAServiceIsReportedIfItsAuthorChoseIt(t *testing.T) {
	const lost = "Service web: spec.clusterIP: 10.0.0.7 is left out, since each application cluster has addresses of its own: have clients " +
		"use the name of the Service, or write the address into the chart if it is free in every cluster"
	const address, headless = "clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7]", "clusterIP: None, clusterIPs: [None]"
	applied := func(spec string) string {
		return `, uid: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec": {` + spec + `}}'}`
	}
	for sentence, c := range map[string]struct {
		metadata, spec, chart string
		want                  []string
	}{
		"a manifest has an address":                      {spec: address, want: []string{lost}},
		"it was applied with an address":                 {metadata: applied(`"clusterIP": "10.0.0.7"`), spec: address, want: []string{lost}},
		"it was applied without an address":              {metadata: applied(`"type": "ClusterIP"`), spec: address},
		"it was created in a cluster":                    {metadata: ", uid: a", spec: address},
		"a headless Service stays headless":              {spec: headless, chart: "  clusterIP: None\n  clusterIPs:\n  - None\n"},
		"a headless Service of a cluster stays headless": {metadata: ", uid: a", spec: "clusterIP: None", chart: "  clusterIP: None\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := withStrategy(`{canary: {}}`, "")
			in = bytes.Replace(in, []byte("Service\nmetadata: {name: web"), []byte("Service\nmetadata: {name: web"+c.metadata), 1)
			in = bytes.Replace(in, []byte("spec: {selector"), []byte("spec: {"+c.spec+", selector"), 1)
			out, err := convert(t.Context(), in, settings{regions: []string{"eu"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.reviews()); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
			_, spec, _ := strings.Cut(out.all[0].chart["templates/service.yaml"], "spec:\n")
			if diff := cmp.Diff(c.chart+"  ports:\n  - port: 80\n  selector:\n    app: web\n", spec); diff != "" {
				t.Errorf("the Service of the chart (-want +got):\n%s", diff)
			}
		})
	}
}
