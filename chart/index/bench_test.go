// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"strings"
	"testing"
)

// largeIndex is an index of about 20 MiB as a public repository has it, in the layout of helm.
func largeIndex() []byte {
	const entry = `  - annotations:
      category: Infrastructure
      images: |
        - name: airflow
          image: docker.io/example/airflow:2
    apiVersion: v2
    appVersion: 2.%[2]d.0
    created: "2024-01-02T03:04:05.000Z"
    dependencies:
    - name: common
      repository: oci://registry.example.com/charts
      tags:
      - common
      version: 2.x.x
    description: A tool to express and execute workflows as directed acyclic graphs
      (DAGs). It includes utilities to schedule tasks, monitor task progress and handle
      task dependencies.
    digest: %064[2]x
    home: https://example.com
    keywords:
    - workflow
    maintainers:
    - name: Example
      url: https://example.com/charts
    name: chart-%[1]d
    urls:
    - https://charts.example.com/chart-%[1]d-1.%[2]d.0.tgz
    version: 1.%[2]d.0
`
	var b strings.Builder
	b.WriteString("apiVersion: v1\nentries:\n")
	for chart := 0; b.Len() < 20<<20; chart++ {
		fmt.Fprintf(&b, "  chart-%d:\n", chart)
		for version := range 150 {
			fmt.Fprintf(&b, entry, chart, version)
		}
	}
	return []byte(b.String())
}

func BenchmarkIndex(b *testing.B) {
	data := largeIndex()
	b.Run("scanned", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			ix, err := NewParser().Parse("charts.example.com", data)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(ix.Size)/(1<<20), "kept-MiB")
		}
	})
	b.Run("by the general parser", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := decodeYAML(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	ix, err := NewParser().Parse("charts.example.com", largeIndex())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := ParseConstraint("~1.7")
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := ix.Resolve("chart-3", c); !ok {
			b.Fatal("nothing found")
		}
	}
}
