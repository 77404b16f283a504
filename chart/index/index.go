// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// Index is the part of a repository's index.yaml that is kept: for every chart its versions, newest first.
type Index struct {
	charts map[string][]Entry
	// Size is its approximate size in memory, in bytes.
	Size int64
}

// Entry is one version of a chart.
type Entry struct {
	Version string
	parsed  *semver.Version
	// Digest is the sha256 in hex, or any other text that the index has in its place; may be empty.
	Digest string
	URLs   []string
}

// listing is an entry of an index file. Other fields are ignored.
type listing struct {
	Version string   `json:"version" yaml:"version"`
	Digest  string   `json:"digest" yaml:"digest"`
	URLs    []string `json:"urls" yaml:"urls"`
}

// file is an index file.
type file struct {
	Entries map[string][]listing `json:"entries" yaml:"entries"`
}

// The bounds of an index besides its bytes.
const (
	// maxFreeform bounds, in bytes, an index that needs the general YAML parser. That parser needs fifteen times the memory and
	// is several times slower than the scanner for the layout that helm writes.
	maxFreeform = 16 << 20
	// MaxEntries is how many versions an index may list.
	MaxEntries = 250_000
	// entryOverhead is the memory of an entry besides its strings.
	entryOverhead = 224
)

// Parser parses index files. It runs the general YAML parser for one file at a time, because of its memory, and for servers in turns: one
// with many files that need it delays those of others by one each.
type Parser struct{ general *keyedsemaphore.Semaphore }

// NewParser returns a Parser, which is safe for concurrent use.
func NewParser() *Parser { return &Parser{general: keyedsemaphore.New(1, 1)} }

// Parse parses an index file of a server. The error is a phrase that follows the file's URL.
func (p *Parser) Parse(server string, data []byte) (*Index, error) {
	read, err := p.decode(server, data)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, listings := range read.Entries {
		total += len(listings)
	}
	if total > MaxEntries {
		return nil, fmt.Errorf("lists %d versions, more than the %d that are accepted", total, MaxEntries)
	}
	ix := &Index{charts: make(map[string][]Entry, len(read.Entries))}
	for name, listings := range read.Entries {
		entries := compact(listings)
		if len(entries) == 0 {
			continue
		}
		ix.charts[name] = entries
		ix.Size += int64(len(name)) + entryOverhead
		for _, e := range entries {
			ix.Size += e.size()
		}
	}
	return ix, nil
}

// OfVersions is an index of one chart, without digests and URLs. It drops texts that are not versions.
func OfVersions(name string, versions []string) *Index {
	listings := make([]listing, len(versions))
	for i, version := range versions {
		listings[i].Version = version
	}
	ix := &Index{charts: map[string][]Entry{}}
	if entries := compact(listings); len(entries) > 0 {
		ix.charts[name] = entries
		for _, e := range entries {
			ix.Size += e.size()
		}
	}
	return ix
}

// Empty reports whether the index lists no charts.
func (ix *Index) Empty() bool { return len(ix.charts) == 0 }

// decode chooses the cheapest parser for data.
func (p *Parser) decode(server string, data []byte) (*file, error) {
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
	p.general.Wait(server)
	defer p.general.Leave(server)
	return decodeYAML(data)
}

// decodeYAML parses an index in any layout.
func decodeYAML(data []byte) (*file, error) {
	var shape struct {
		file       `yaml:",inline"`
		APIVersion string `yaml:"apiVersion"`
	}
	if err := yaml.Unmarshal(data, &shape); err != nil {
		// The parser's error is kept only if it quotes nothing of the file: the URL may lead to a secret.
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

// compact keeps the valid versions, newest first.
func compact(listings []listing) []Entry {
	entries := make([]Entry, 0, len(listings))
	for _, l := range listings {
		parsed, err := semver.NewVersion(l.Version)
		if err != nil {
			continue
		}
		digest := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(l.Digest)), "sha256:")
		entries = append(entries, Entry{Version: l.Version, parsed: parsed, Digest: digest, URLs: slices.Clip(l.URLs)})
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(b.parsed.Compare(a.parsed), compareBuilds(b.parsed.Metadata(), a.parsed.Metadata()))
	})
	return slices.Clip(entries)
}

// compareBuilds orders build metadata, which SemVer does not: numbers as numbers, so that b10 is behind b9, and the rest as text.
func compareBuilds(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		n, m := digits(x), digits(y)
		if n > 0 && m > 0 {
			left, right := strings.TrimLeft(x[:n], "0"), strings.TrimLeft(y[:m], "0")
			if order := cmp.Or(cmp.Compare(len(left), len(right)), cmp.Compare(left, right)); order != 0 {
				return order
			}
			x, y = x[n:], y[m:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits is how many digits a text begins with.
func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }

func (e Entry) size() int64 {
	size := entryOverhead + len(e.Version) + len(e.Digest)
	for _, u := range e.URLs {
		size += len(u)
	}
	return int64(size)
}

// Resolve returns the newest entry of the chart that satisfies c; an entry with c's exact text wins.
func (ix *Index) Resolve(name string, c Constraint) (Entry, bool) {
	entries := ix.charts[name]
	if e, ok := named(entries, c.raw); ok {
		return e, true
	}
	for _, e := range entries {
		if c.admits(e.parsed) {
			return e, true
		}
	}
	return Entry{}, false
}

// Exact returns the entry of a pinned version: of the same text except for a leading v, or of equal precedence if the pin has
// no build metadata.
func (ix *Index) Exact(name, version string) (Entry, bool) {
	entries := ix.charts[name]
	if e, ok := named(entries, version); ok {
		return e, true
	}
	want, err := exactVersion(version)
	if err != nil || want.Metadata() != "" {
		return Entry{}, false
	}
	for _, e := range entries {
		if e.parsed.Equal(want) {
			return e, true
		}
	}
	return Entry{}, false
}

// named finds the entry of a version, preferably with the same leading v.
func named(entries []Entry, version string) (Entry, bool) {
	if version == "" {
		return Entry{}, false
	}
	bare := -1
	for i, e := range entries {
		if e.Version == version {
			return e, true
		}
		if bare < 0 && strings.TrimPrefix(e.Version, "v") == strings.TrimPrefix(version, "v") {
			bare = i
		}
	}
	if bare < 0 {
		return Entry{}, false
	}
	return entries[bare], true
}
