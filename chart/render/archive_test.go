// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"shipper.dev/shipper/chart/render"
)

// pack makes an archive of files of which each may be long.
func pack(t *testing.T, write func(add func(name string, content []byte))) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	writer := tar.NewWriter(zipped)
	write(func(name string, content []byte) {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(content); err != nil {
			t.Fatal(err)
		}
	})
	for _, c := range []interface{ Close() error }{writer, zipped} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return packed.Bytes()
}

func TestOpenRefuses(t *testing.T) {
	zeros := make([]byte, 4<<20)
	chartYAML := []byte(metadata)
	bomb := pack(t, func(add func(string, []byte)) {
		for i := range 30 {
			add(fmt.Sprintf("bomb/%d", i), zeros)
		}
	})
	nested := bomb
	for range 9 {
		inner := nested
		nested = pack(t, func(add func(string, []byte)) { add("x/Chart.yaml", chartYAML); add("x/charts/x.tgz", inner) })
	}
	shallow := pack(t, func(add func(string, []byte)) { add("x/charts/sub/charts/x.tgz", bomb) })
	whole := pack(t, func(add func(string, []byte)) { add("x/Chart.yaml", chartYAML) })
	tests := map[string]struct {
		archive []byte
		want    string
	}{
		"nothing":             {nil, "it is not a gzip file"},
		"text":                {[]byte("hello"), "it is not a gzip file"},
		"a gzip file of text": {gzipped(t, "hello"), "it is not a whole tar file: "},
		"an archive cut off":  {whole[:len(whole)-20], "it is not a whole tar file: "},
		"an empty archive":    {pack(t, func(func(string, []byte)) {}), "no files in chart archive"},
		"no Chart.yaml":       {pack(t, func(add func(string, []byte)) { add("x/values.yaml", nil) }), "Chart.yaml file is missing"},
		"a path that leaves": {
			pack(t, func(add func(string, []byte)) { add("x/../../etc/passwd", nil) }),
			"chart illegally references parent directory",
		},
		"a Chart.yaml without name": {
			pack(t, func(add func(string, []byte)) { add("x/Chart.yaml", []byte("apiVersion: v2\nversion: 1.0.0\n")) }),
			"validation: chart.metadata.name is required",
		},
		"a bomb":                   {bomb, "it unpacks to more than 100 MiB"},
		"a bomb in a subchart":     {shallow, "subchart x.tgz: it unpacks to more than 100 MiB"},
		"a bomb in many subcharts": {nested, strings.Repeat("subchart x.tgz: ", 8) + "subcharts are packed into one another more than 8 times"},
		"a subchart that is text": {
			pack(t, func(add func(string, []byte)) { add("x/charts/sub.tgz", []byte("hello")) }), "subchart sub.tgz: it is not a gzip file",
		},
		"a large file": {
			pack(t, func(add func(string, []byte)) { add("x/big", make([]byte, 6<<20)) }),
			`its file "x/big" is larger than 5 MiB`,
		},
		"many files": {
			pack(t, func(add func(string, []byte)) {
				for i := range 10_001 {
					add(fmt.Sprintf("x/%d", i), nil)
				}
			}), "it has more than 10000 files",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := render.Open(test.archive)
			got := read(t, err)
			want := "the chart's archive cannot be used: " + test.want
			if !strings.HasPrefix(got.Message, want) || got.Reason != "BrokenChartSpec" || got.Retry {
				t.Errorf("got %+v\nwant %s", got, want)
			}
		})
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	if _, err := zipped.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestOpenReadsSubchartsInArchives(t *testing.T) {
	sub := pack(t, func(add func(string, []byte)) {
		add("sub/Chart.yaml", []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n"))
		add("sub/templates/x.yaml", []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: sub}\n"))
	})
	c, err := render.Open(pack(t, func(add func(string, []byte)) {
		add("x/Chart.yaml", []byte(metadata))
		add("x/charts/sub.tgz", sub)
		add("x/files/charts.tgz", []byte("not an archive at all"))
		add("x/templates/d.yaml", []byte(deployment))
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got := names(renderTarget(t, c, nil).Objects); len(got) != 2 || got[0] != "Secret/sub" {
		t.Error(got)
	}
}

// It is opened while a request waits, so its bound is much lower than that of a fetched one.
func TestAnInlineBombIsRefused(t *testing.T) {
	bomb := pack(t, func(add func(string, []byte)) {
		for i := range 5 {
			add(fmt.Sprintf("bomb/%d", i), make([]byte, 4<<20))
		}
	})
	_, err := render.OpenInline(base64.StdEncoding.EncodeToString(bomb))
	if got := read(t, err).Message; got != "the chart's archive cannot be used: it unpacks to more than 16 MiB" {
		t.Error(got)
	}
}
