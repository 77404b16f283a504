// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// object is stored as the API server has it: whatever this program does not know of comes back too.
type object = unstructured.Unstructured

// Backup is what a file holds: a list of entries.
type Backup []Entry

// Entry is one of: an Application with its Releases, a RolloutBlock, a Cluster with its Secret, the identity of the
// management cluster, a chart that Releases are made of. Only the first is in every backup.
type Entry struct {
	Application *object   `json:"application,omitempty"`
	Releases    []Release `json:"backup_releases,omitempty"`

	RolloutBlock *object `json:"rollout_block,omitempty"`

	Cluster       *object `json:"cluster,omitempty"`
	ClusterSecret *object `json:"cluster_secret,omitempty"`

	Identity *object `json:"identity,omitempty"`

	ChartSnapshot *object   `json:"chart_snapshot,omitempty"`
	ChartParts    []*object `json:"chart_parts,omitempty"`
}

// Release is a Release with its targets; each target is nil when there was none.
type Release struct {
	Release            *object `json:"release"`
	InstallationTarget *object `json:"installation_target,omitempty"`
	CapacityTarget     *object `json:"capacity_target,omitempty"`
	TrafficTarget      *object `json:"traffic_target,omitempty"`
}

// Format is how a file is written. Either is read without being told which.
type Format string

// The formats.
const (
	YAML Format = "yaml"
	JSON Format = "json"
)

// check refuses what is neither.
func (f Format) check() error {
	if f != YAML && f != JSON {
		return cli.WithCode(cli.Misused, fmt.Errorf("--format is %q: it must be %s or %s", f, YAML, JSON))
	}
	return nil
}

// Marshal writes a backup as text.
func (b Backup) Marshal(f Format) ([]byte, error) {
	if b == nil {
		b = Backup{}
	}
	if f == JSON {
		text, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("writing the backup as JSON: %w", err)
		}
		return append(text, '\n'), nil
	}
	text, err := yaml.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("writing the backup as YAML: %w", err)
	}
	return text, nil
}

// Parse reads what Marshal writes, and the files of the original. All that is wrong with it is told at once.
func Parse(text []byte) (Backup, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("it is neither YAML nor JSON: %w", err)
	}
	var b Backup
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&b); err != nil {
		return nil, fmt.Errorf("it was not written by `shipperctl backup prepare`: %w", err)
	}
	var problems []error
	for i, e := range b {
		for _, err := range e.problems() {
			problems = append(problems, fmt.Errorf("entry %d: %w", i+1, err))
		}
	}
	return b, errors.Join(append(problems, b.twice()...)...)
}

// ReadFile reads a file.
func ReadFile(path string) (Backup, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the backup: %w", err)
	}
	b, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the backup %s: %w", path, err)
	}
	return b, nil
}

// writeFile writes a file that only its owner may read, for values and Secrets are in it. It is there whole or, when that
// fails, as it was before.
func writeFile(path string, text []byte) (err error) {
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("writing the backup: %w", err)
		}
	}()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
