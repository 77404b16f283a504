// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"
)

// index is what is kept of a repository's index.yaml: for every chart its versions, newest first.
type index struct {
	charts map[string][]entry
	// size is about how many bytes it takes in memory.
	size int64
}

// entry is one version of a chart.
type entry struct {
	version string
	parsed  *semver.Version
	// digest is the sha256 in hex, or whatever else the index has in its place; empty when it has nothing.
	digest string
	urls   []string
}

// listing is an entry as an index file has it. Everything else in the file is passed over.
type listing struct {
	Version string   `json:"version" yaml:"version"`
	Digest  string   `json:"digest" yaml:"digest"`
	URLs    []string `json:"urls" yaml:"urls"`
}

// file is an index file.
type file struct {
	Entries map[string][]listing `json:"entries" yaml:"entries"`
}

// The sizes of an index beyond its bytes.
const (
	// maxFreeform is how long an index may be when only the general YAML parser understands it. That parser needs fifteen
	// times the memory and is several times slower than the scanner for the layout that helm writes.
	maxFreeform = 16 << 20
	// maxEntries is how many versions an index may list.
	maxEntries = 250_000
	// entryOverhead is what an entry takes in memory beside its strings.
	entryOverhead = 224
)

// parser reads index files. It lets the general YAML parser work on one at a time, since that takes so much memory.
type parser struct {
	general sync.Mutex
}

// parse reads an index file. The error is a phrase that follows the file's URL.
func (p *parser) parse(data []byte) (*index, error) {
	read, err := p.decode(data)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, listings := range read.Entries {
		total += len(listings)
	}
	if total > maxEntries {
		return nil, fmt.Errorf("lists %d versions, more than the %d that are accepted", total, maxEntries)
	}
	ix := &index{charts: make(map[string][]entry, len(read.Entries))}
	for name, listings := range read.Entries {
		entries := compact(listings)
		if len(entries) == 0 {
			continue
		}
		ix.charts[name] = entries
		ix.size += int64(len(name)) + entryOverhead
		for _, e := range entries {
			ix.size += e.size()
		}
	}
	return ix, nil
}

// decode chooses the cheapest way to understand data.
func (p *parser) decode(data []byte) (*file, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("is an empty file, not a chart index")
	}
	if page := bytes.TrimSpace(data[:min(len(data), 512)]); bytes.HasPrefix(page, []byte("<")) {
		return nil, errors.New("is a page of HTML or XML, not a chart index")
	}
	read := &file{}
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) && json.Unmarshal(data, read) == nil {
		return read, nil
	}
	if entries, ok := scanIndex(data); ok {
		return &file{Entries: entries}, nil
	}
	if len(data) > maxFreeform {
		return nil, fmt.Errorf("has %d MiB and is not laid out as `helm repo index` writes it; "+
			"such an index may have at most %d MiB", len(data)>>20, maxFreeform>>20)
	}
	p.general.Lock()
	defer p.general.Unlock()
	return decodeYAML(data)
}

// decodeYAML reads an index in any layout.
func decodeYAML(data []byte) (*file, error) {
	var shape struct {
		file       `yaml:",inline"`
		APIVersion string `yaml:"apiVersion"`
	}
	if err := yaml.Unmarshal(data, &shape); err != nil {
		// What the parser says is kept only as far as it quotes nothing of the file: a URL may lead to secrets.
		if syntax := err.Error(); strings.HasPrefix(syntax, "yaml: ") && !strings.ContainsAny(syntax, "`\"'") {
			return nil, fmt.Errorf("is not a chart index: %s", syntax)
		}
		return nil, errors.New("is not a chart index")
	}
	if shape.Entries == nil && shape.APIVersion == "" {
		return nil, errors.New("is not a chart index: it has neither apiVersion nor entries")
	}
	return &shape.file, nil
}

// compact keeps the versions that can be understood, newest first.
func compact(listings []listing) []entry {
	entries := make([]entry, 0, len(listings))
	for _, l := range listings {
		parsed, err := semver.NewVersion(l.Version)
		if err != nil {
			continue
		}
		digest := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(l.Digest)), "sha256:")
		entries = append(entries, entry{version: l.Version, parsed: parsed, digest: digest, urls: slices.Clip(l.URLs)})
	}
	sort.SliceStable(entries, func(i, j int) bool {
		order := entries[i].parsed.Compare(entries[j].parsed)
		if order == 0 {
			return entries[i].parsed.Metadata() > entries[j].parsed.Metadata()
		}
		return order > 0
	})
	return slices.Clip(entries)
}

func (e entry) size() int64 {
	size := entryOverhead + len(e.version) + len(e.digest)
	for _, u := range e.urls {
		size += len(u)
	}
	return int64(size)
}

// resolve returns the newest entry of the chart that satisfies c; an entry of the very name wins.
func (ix *index) resolve(chart string, c constraint) (entry, bool) {
	entries := ix.charts[chart]
	if e, ok := named(entries, c.raw); ok {
		return e, true
	}
	for _, e := range entries {
		if c.admits(e.parsed) {
			return e, true
		}
	}
	return entry{}, false
}

// exact returns the entry for a version that was pinned: of the very name, but for a leading v, or of equal precedence
// when the pin says nothing of build metadata.
func (ix *index) exact(chart, version string) (entry, bool) {
	entries := ix.charts[chart]
	if e, ok := named(entries, version); ok {
		return e, true
	}
	want, err := exactVersion(version)
	if err != nil || want.Metadata() != "" {
		return entry{}, false
	}
	for _, e := range entries {
		if e.parsed.Equal(want) {
			return e, true
		}
	}
	return entry{}, false
}

// named finds the entry of a name, rather with the v that it was asked with.
func named(entries []entry, version string) (entry, bool) {
	if version == "" {
		return entry{}, false
	}
	bare := -1
	for i, e := range entries {
		if e.version == version {
			return e, true
		}
		if bare < 0 && strings.TrimPrefix(e.version, "v") == strings.TrimPrefix(version, "v") {
			bare = i
		}
	}
	if bare < 0 {
		return entry{}, false
	}
	return entries[bare], true
}
