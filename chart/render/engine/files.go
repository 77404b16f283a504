// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/base64"
	"path"
	"strings"
	"unsafe"

	"github.com/gobwas/glob"
	"helm.sh/helm/v3/pkg/chart"
)

// files are what templates see as .Files: the chart's files beside its templates, by name.
type files map[string][]byte

func newFiles(from []*chart.File) files {
	named := make(files, len(from))
	for _, f := range from {
		named[f.Name] = f.Data
	}
	return named
}

// GetBytes is the content of a file; empty when there is none of that name.
func (f files) GetBytes(name string) []byte {
	if content, ok := f[name]; ok {
		return content
	}
	return []byte{}
}

// Get is the content of a file as text. It is not copied: nothing changes what was loaded.
func (f files) Get(name string) string {
	content := f.GetBytes(name)
	return unsafe.String(unsafe.SliceData(content), len(content))
}

// Glob is the files whose names match a pattern; all of them when the pattern is none, as in Helm.
func (f files) Glob(pattern string) files {
	matcher, err := glob.Compile(pattern, '/')
	if err != nil {
		matcher = glob.MustCompile("**")
	}
	matching := files{}
	for name, content := range f {
		if matcher.Match(name) {
			matching[name] = content
		}
	}
	return matching
}

// AsConfig is the files as the data of a ConfigMap, by the last part of their names.
func (f files) AsConfig() (string, error) {
	return f.encoded(func(content []byte) string { return string(content) })
}

// AsSecrets is the files as the data of a Secret.
func (f files) AsSecrets() (string, error) {
	return f.encoded(base64.StdEncoding.EncodeToString)
}

func (f files) encoded(encode func([]byte) string) (string, error) {
	size := 0
	for _, content := range f {
		size += len(content)
	}
	if size > maxFiles {
		return "", exceeded("files of more than %d MiB are encoded at once", maxFiles>>20)
	}
	if f == nil {
		return "", nil
	}
	data := make(map[string]string, len(f))
	for name, content := range f {
		data[path.Base(name)] = encode(content)
	}
	return toYAML(data), nil
}

// Lines is the lines of a file.
func (f files) Lines(name string) []string {
	content := f.Get(name)
	if content == "" {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(content, "\n"), "\n")
}
