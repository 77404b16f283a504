// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// object is unstructured, so that fields unknown to this program are restored, too.
type object = unstructured.Unstructured

// Backup is the file: a list of entries.
type Backup []Entry

// Entry is one of: an Application with its Releases, a Check, a Notification, an Envelope, a Strategy, a RolloutBlock, a Cluster with its
// Secret, the identity of the management cluster, the content or the chart that Releases are made of. RolloutBlocks, Clusters, the identity
// and charts are saved on request only, and so are the Secrets of content.
type Entry struct {
	Application *object   `json:"application,omitempty"`
	Releases    []Release `json:"backup_releases,omitempty"`

	Check *object `json:"check,omitempty"`

	Notification *object `json:"notification,omitempty"`

	Envelope *object `json:"envelope,omitempty"`

	Strategy *object `json:"strategy,omitempty"`

	RolloutBlock *object `json:"rollout_block,omitempty"`

	Cluster       *object `json:"cluster,omitempty"`
	ClusterSecret *object `json:"cluster_secret,omitempty"`

	Identity *object `json:"identity,omitempty"`

	ChartSnapshot *object   `json:"chart_snapshot,omitempty"`
	ChartParts    []*object `json:"chart_parts,omitempty"`

	ResourceSnapshot *object   `json:"resource_snapshot,omitempty"`
	ResourceParts    []*object `json:"resource_parts,omitempty"`
	ResourceSecrets  []*object `json:"resource_secrets,omitempty"`
}

// Release is a Release with its targets; each target is nil when there was none.
type Release struct {
	Release            *object `json:"release"`
	InstallationTarget *object `json:"installation_target,omitempty"`
	CapacityTarget     *object `json:"capacity_target,omitempty"`
	TrafficTarget      *object `json:"traffic_target,omitempty"`
}

// Marshal encodes a backup; one without entries is an empty list.
func (b Backup) Marshal(f cli.Format) ([]byte, error) {
	if b == nil {
		b = Backup{}
	}
	return f.Marshal(b)
}

// parseBackup reads the files of Marshal and of the original. Its error lists all problems.
func parseBackup(text []byte) (Backup, error) {
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
	return b, errors.Join(append(problems, b.duplicates()...)...)
}

// readFile reads a file.
func readFile(path string) (Backup, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the backup: %w", err)
	}
	b, err := parseBackup(text)
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

// The kinds in a backup.
var (
	applicationKind  = shipper.GroupVersion.WithKind("Application")
	releaseKind      = shipper.GroupVersion.WithKind("Release")
	installationKind = shipper.GroupVersion.WithKind("InstallationTarget")
	capacityKind     = shipper.GroupVersion.WithKind("CapacityTarget")
	trafficKind      = shipper.GroupVersion.WithKind("TrafficTarget")
	notificationKind = shipper.GroupVersion.WithKind("Notification")
	checkKind        = shipper.GroupVersion.WithKind("Check")
	approvalKind     = shipper.GroupVersion.WithKind("Approval")    // read, and not saved
	checkTargetKind  = shipper.GroupVersion.WithKind("CheckTarget") // read, and not saved
	blockKind        = shipper.GroupVersion.WithKind("RolloutBlock")
	clusterKind      = shipper.GroupVersion.WithKind("Cluster")
	secretKind       = corev1.SchemeGroupVersion.WithKind("Secret")
	snapshotKind     = shipper.GroupVersion.WithKind("ChartSnapshot")
	envelopeKind     = shipper.GroupVersion.WithKind("Envelope")
	contentKind      = shipper.GroupVersion.WithKind("ResourceSnapshot")
	strategyKind     = shipper.GroupVersion.WithKind("Strategy")
	configMapKind    = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

// words are the names of kinds for people.
var words = map[string]string{
	"Application": "application", "Release": "release", "InstallationTarget": "installation target",
	"CapacityTarget": "capacity target", "TrafficTarget": "traffic target", "RolloutBlock": "rollout block",
	"Cluster": "cluster", "Secret": "secret", "ConfigMap": "config map",
	"ChartSnapshot": "chart snapshot", "Notification": "notification", "Approval": "approval",
	"Check": "check", "CheckTarget": "check target",
	"Envelope": "envelope", "ResourceSnapshot": "resource snapshot", "Strategy": "strategy",
}

// slot is a key of the file and the kind of its object.
type slot struct {
	key  string
	kind schema.GroupVersionKind
	have *object
}

func (e Entry) slots() []slot {
	slots := []slot{
		{"application", applicationKind, e.Application}, {"check", checkKind, e.Check}, {"notification", notificationKind, e.Notification},
		{"rollout_block", blockKind, e.RolloutBlock}, {"cluster", clusterKind, e.Cluster}, {"cluster_secret", secretKind, e.ClusterSecret},
		{"identity", configMapKind, e.Identity}, {"chart_snapshot", snapshotKind, e.ChartSnapshot},
		{"envelope", envelopeKind, e.Envelope}, {"resource_snapshot", contentKind, e.ResourceSnapshot},
		{"strategy", strategyKind, e.Strategy},
	}
	for _, part := range e.ChartParts {
		slots = append(slots, slot{"chart_parts", snapshotKind, part})
	}
	for _, part := range e.ResourceParts {
		slots = append(slots, slot{"resource_parts", contentKind, part})
	}
	for _, secret := range e.ResourceSecrets {
		slots = append(slots, slot{"resource_secrets", secretKind, secret})
	}
	return slots
}

func (r Release) slots() []slot {
	return []slot{
		{"release", releaseKind, r.Release}, {"installation_target", installationKind, r.InstallationTarget},
		{"capacity_target", capacityKind, r.CapacityTarget}, {"traffic_target", trafficKind, r.TrafficTarget},
	}
}

// problems are the faults of an entry.
func (e Entry) problems() []error {
	var out []error
	for _, s := range e.slots() {
		out = append(out, s.problem())
	}
	there := 0
	for _, o := range []*object{
		e.Application, e.Check, e.Notification, e.Envelope, e.Strategy, e.RolloutBlock, e.Cluster, e.Identity, e.ChartSnapshot,
		e.ResourceSnapshot,
	} {
		if o != nil {
			there++
		}
	}
	if there != 1 {
		out = append(out, errors.New("it must have one of application, check, notification, envelope, strategy, rollout_block, cluster, "+
			"identity, chart_snapshot and resource_snapshot"))
	}
	if e.Application == nil && len(e.Releases) > 0 {
		out = append(out, errors.New("backup_releases are without their application"))
	}
	if e.Cluster == nil && e.ClusterSecret != nil {
		out = append(out, errors.New("cluster_secret is without its cluster"))
	}
	if e.ChartSnapshot == nil && len(e.ChartParts) > 0 {
		out = append(out, errors.New("chart_parts are without their chart_snapshot"))
	}
	if e.ResourceSnapshot == nil && len(e.ResourceParts)+len(e.ResourceSecrets) > 0 {
		out = append(out, errors.New("resource_parts or resource_secrets are without their resource_snapshot"))
	}
	if e.Application != nil {
		for _, r := range e.Releases {
			out = append(out, r.problems(e.Application)...)
		}
	}
	return slices.DeleteFunc(out, func(err error) bool { return err == nil })
}

// problems are the faults of a Release of app.
func (r Release) problems(app *object) []error {
	if r.Release == nil {
		return []error{errors.New("one of backup_releases has no release")}
	}
	var out []error
	for _, s := range r.slots() {
		if out = append(out, s.problem()); s.have == nil {
			continue
		}
		if s.have.GetNamespace() != app.GetNamespace() {
			out = append(out, fmt.Errorf("%s is not in the namespace of application %q", describe(s.have), nameOf(app)))
		}
		if s.have.GetName() != r.Release.GetName() {
			out = append(out, fmt.Errorf("%s has not the name of release %q", describe(s.have), nameOf(r.Release)))
		}
	}
	if label := r.Release.GetLabels()[shipper.AppLabel]; label != app.GetName() {
		out = append(out, fmt.Errorf("%s is of application %q, says its label %s, and stands with %q",
			describe(r.Release), label, shipper.AppLabel, app.GetName()))
	}
	return out
}

func (s slot) problem() error {
	switch {
	case s.have == nil:
		return nil
	case s.have.GroupVersionKind() != s.kind:
		return fmt.Errorf("%s is a %s of %s, and must be a %s of %s", s.key, s.have.GetKind(), s.have.GetAPIVersion(),
			s.kind.Kind, s.kind.GroupVersion())
	case s.have.GetName() == "":
		return fmt.Errorf("%s has no metadata.name", s.key)
	case s.have.GetNamespace() == "" && s.kind != clusterKind:
		return fmt.Errorf("%s %q has no metadata.namespace", s.key, s.have.GetName())
	}
	return nil
}

// duplicates reports objects that occur more than once.
func (b Backup) duplicates() []error {
	var out []error
	seen := map[string]bool{}
	note := func(s slot) {
		if s.have == nil {
			return
		}
		text := describe(s.have)
		if seen[text] {
			out = append(out, fmt.Errorf("%s is there twice", text))
		}
		seen[text] = true
	}
	for _, e := range b {
		for _, s := range e.slots() {
			note(s)
		}
		for _, r := range e.Releases {
			for _, s := range r.slots() {
				note(s)
			}
		}
	}
	return out
}

// describe names an object for people: `release "default/web-0"`.
func describe(o *object) string {
	word := words[o.GetKind()]
	if word == "" {
		word = strings.ToLower(o.GetKind())
	}
	return fmt.Sprintf("%s %q", word, nameOf(o))
}

// nameOf is `namespace/name`, or the name of a cluster-scoped object.
func nameOf(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
