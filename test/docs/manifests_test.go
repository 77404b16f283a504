// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookadmissionv1 "k8s.io/apiserver/pkg/admission/plugin/webhook/config/apis/webhookadmission/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	rules "shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/clusters"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
)

// elsewhere replaces the documents' servers: the fleet's repository has the charts, and its Shipper lists URLs of this machine only.
var elsewhere = strings.NewReplacer("https://charts.example.com", charts.Public, "https://orders.example.com", "http://127.0.0.1:8080")

// TestManifests applies every manifest of the documents by a dry run, through the webhook. Files for other programs are
// parsed as those programs do.
func TestManifests(t *testing.T) {
	quickStart(t)
	t.Parallel()
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "yaml" {
				continue
			}
			for i, text := range strings.Split(b.text, "\n---\n") {
				n++
				t.Run(fmt.Sprintf("%s:%d.%d", p.name, b.line, i), func(t *testing.T) {
					t.Parallel()
					read(t, p, text)
				})
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d manifests were found", n)
	}
}

// kustomization has the fields that documents use. kustomize itself reads manifests/overlays in test/chart.
type kustomization struct {
	Resources []string `json:"resources,omitempty"`
	Images    []struct{ Name, NewName, NewTag string }
	Patches   []struct {
		Target struct{ Kind, Name string }
		Patch  string
	}
}

// read parses a piece of YAML by its kind.
func read(t *testing.T, p page, text string) {
	t.Helper()
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`

		Rules               any `json:"rules"`
		ApplicationClusters any `json:"applicationClusters"`
		Resources, Patches  any
		Strategy            any `json:"strategy"`
		Waves               any `json:"waves"`
		Status              any `json:"status"`
		Env                 any `json:"env"`
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatal(err)
	}
	strict := func(into any) {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Error(err)
		}
	}
	switch {
	case head.Kind == "AdmissionConfiguration":
		config := &apiserverv1.AdmissionConfiguration{}
		strict(config)
		for _, plugin := range config.Plugins {
			if err := yaml.UnmarshalStrict(plugin.Configuration.Raw, &webhookadmissionv1.WebhookAdmission{}); err != nil {
				t.Errorf("%s: %v", plugin.Name, err)
			}
		}
	case head.Kind == "Config":
		strict(&clientcmdv1.Config{})
	case head.Kind == "Canary", head.Kind == "HTTPRoute", head.Kind == "PodMonitor": // kinds that the fleet does not serve
	case head.Strategy != nil && p.name == "docs/strategies.md": // TestStrategiesOfThePageAreRolledOut rolls it out
	case head.Strategy != nil:
		applies(t, p, withStrategy(t, text), head.Metadata)
	case head.Waves != nil:
		applies(t, p, withStrategy(t, "strategy:\n  steps: [{name: full on, capacity: {contender: 100}, traffic: {contender: 100}}]\n  "+
			strings.ReplaceAll(text, "\n", "\n  ")), head.Metadata)
	case head.Kind != "":
		applies(t, p, text, head.Metadata)
	case head.Status != nil:
		strict(&shipper.Application{})
	case head.ApplicationClusters != nil:
		if _, err := clusters.Parse("clusters.yaml", []byte(text)); err != nil {
			t.Error(err)
		}
	case head.Rules != nil:
		applies(t, p, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: of-the-document}\n"+text, head.Metadata)
	case head.Env != nil:
		strict(&corev1.Container{})
	case head.Resources != nil, head.Patches != nil:
		strict(&kustomization{})
	case p.name == "examples/gitops/README.md": // annotations for a program that test/gitops simulates
	default:
		t.Errorf("no parser for this YAML:\n%s", text)
	}
}

// withStrategy is an Application with the strategy of a document.
func withStrategy(t *testing.T, text string) string {
	t.Helper()
	app := (&env{T: t}).application(super, "0.0.1", 1, "eu-west")
	var of struct {
		Strategy *shipper.RolloutStrategy `json:"strategy"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &of); err != nil {
		t.Error(err)
	}
	app.Spec.Template.Strategy = of.Strategy
	out, err := yaml.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// applies applies a manifest by a dry run, and returns what kubectl printed. The namespace, the blocks and the Checks that it names exist.
func applies(t *testing.T, p page, text string, meta metav1.ObjectMeta) string {
	t.Helper()
	s := newEnv(t, p)
	if meta.Namespace != "" {
		s.namespaced(meta.Namespace)
	}
	overridden, err := rules.ParseOverrides(meta.Annotations[shipper.RolloutBlockOverrideAnnotation])
	s.must(err)
	for _, name := range overridden {
		s.blocked(name.Namespace, name.Name, "jdoe", shipper.RolloutBlockSpec{Message: "the document speaks of it"})
	}
	s.holds(text)
	s.selects(text)
	s.measures(p, text)
	s.shares(p, text)
	kubectl, err := fleet.Kubectl()
	s.must(err)
	args := []string{"apply", "--dry-run=server", "--validate=strict", "-f", "-", "--kubeconfig", world.fleet.Kubeconfig}
	if meta.Namespace == "" {
		args = append(args, "-n", s.namespace)
	}
	cmd := exec.CommandContext(s.ctx, kubectl, args...)
	cmd.Stdin = strings.NewReader(elsewhere.Replace(text))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
	return string(out)
}

// holds creates the ConfigMaps and Secrets that an Application's values need, and lets Shipper keep their content.
func (s *env) holds(text string) {
	s.Helper()
	app := &shipper.Application{}
	if err := yaml.Unmarshal([]byte(text), app); err != nil || len(app.Spec.Template.ValuesFrom) == 0 {
		return
	}
	s.must(world.management.Create(s.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: shipper.ValuesKeeper},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.ValuesKeeper},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	}))
	for _, source := range app.Spec.Template.ValuesFrom {
		ref := source.Ref()
		meta := metav1.ObjectMeta{Namespace: s.namespace, Name: ref.Name}
		switch data := map[string]string{ref.Key: "replicaCount: 1"}; {
		case ref.Optional:
		case source.Secret():
			s.must(world.management.Create(s.ctx, &corev1.Secret{ObjectMeta: meta, StringData: data}))
		default:
			s.must(world.management.Create(s.ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: data}))
		}
	}
}

// selects lets Shipper read what an Application selects.
func (s *env) selects(text string) {
	s.Helper()
	app := &shipper.Application{}
	if err := yaml.Unmarshal([]byte(text), app); err == nil && app.Kind == "Application" && app.Spec.Template.Resources != nil {
		world.env.In(s.T, s.namespace, app.Name).LetsSelect()
	}
}

// shares creates the Strategy of the document that an Application takes.
func (s *env) shares(p page, text string) {
	s.Helper()
	app := &shipper.Application{}
	if err := yaml.Unmarshal([]byte(text), app); err != nil || stamp.From(&app.Spec.Template) == nil {
		return
	}
	from := stamp.From(&app.Spec.Template)
	for _, b := range p.blocks {
		shared := &shipper.Strategy{}
		if b.language == "yaml" && yaml.Unmarshal([]byte(b.text), shared) == nil && shared.Kind == "Strategy" && shared.Name == from.Name {
			shared.Namespace = cmp.Or(from.Namespace, s.namespace)
			s.must(world.management.Create(s.ctx, shared))
		}
	}
}

// measures creates the Checks of the document that an Application names.
func (s *env) measures(p page, text string) {
	s.Helper()
	app := &shipper.Application{}
	if err := yaml.Unmarshal([]byte(text), app); err != nil || !app.Spec.Template.Strategy.HasChecks() {
		return
	}
	for _, b := range p.blocks {
		check := &shipper.Check{}
		if b.language != "yaml" || yaml.Unmarshal([]byte(elsewhere.Replace(b.text)), check) != nil {
			continue
		}
		if check.Kind != "Check" || check.Namespace != "" {
			continue
		}
		check.Namespace = s.namespace
		s.must(world.management.Create(s.ctx, check))
	}
}
