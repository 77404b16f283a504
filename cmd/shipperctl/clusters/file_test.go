// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func ptr[T any](v T) *T { return &v }

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want *File
	}{
		"the documented minimal file": {
			text: `
managementClusters:
- name: kind-mgmt # kind contexts are prefixed with kind-
applicationClusters:
- name: kind-app
  region: local
`,
			want: &File{
				Management: []ManagementCluster{{Name: "kind-mgmt", Context: "kind-mgmt"}},
				Applications: []ApplicationCluster{
					{Name: "kind-app", Context: "kind-app", Spec: shipper.ClusterSpec{Region: "local"}},
				},
			},
		},
		"the documented file for GKE, with contexts and the key managementCluster": {
			text: `
managementCluster:
- name: eu-m
  context: gke_ACCOUNT_ZONE_M
applicationClusters:
- name: eu-1
  region: eu-west
  context: gke_ACCOUNT_ZONE_1
- name: eu-2
  region: eu-west
  context: gke_ACCOUNT_ZONE_2
  scheduler:
    unschedulable: true
`,
			want: &File{
				Management: []ManagementCluster{{Name: "eu-m", Context: "gke_ACCOUNT_ZONE_M"}},
				Applications: []ApplicationCluster{
					{Name: "eu-1", Context: "gke_ACCOUNT_ZONE_1", Spec: shipper.ClusterSpec{Region: "eu-west"}},
					{Name: "eu-2", Context: "gke_ACCOUNT_ZONE_2", Spec: shipper.ClusterSpec{
						Region: "eu-west", Scheduler: shipper.ClusterSchedulerSettings{Unschedulable: true}}},
				},
			},
		},
		"every field of a Cluster, and no management cluster": {
			text: `
applicationClusters:
- name: eu-1
  region: eu-west
  apiMaster: "https://10.0.0.1:6443"
  capabilities: [gpu, "1.5"]
  scheduler: {unschedulable: false, weight: 0, identity: eu-0}
  metrics: {address: "https://prometheus.eu-1.example.com", secretName: prometheus-eu-1, tenantLabel: namespace}
`,
			want: &File{
				Applications: []ApplicationCluster{{Name: "eu-1", Context: "eu-1", Spec: shipper.ClusterSpec{
					Region: "eu-west", APIMaster: "https://10.0.0.1:6443", Capabilities: []string{"gpu", "1.5"},
					Scheduler: shipper.ClusterSchedulerSettings{Weight: ptr[int32](0), Identity: ptr("eu-0")},
					Metrics: &shipper.ClusterMetrics{
						Address: "https://prometheus.eu-1.example.com", SecretName: "prometheus-eu-1", TenantLabel: "namespace",
					},
				}}},
			},
		},
		"keys without a value are absent, and aliases are followed": {
			text: `
managementClusters:
applicationClusters:
- name: eu-1
  region: &r eu-west
  context:
  capabilities: &c [gpu]
  scheduler:
- name: eu-2
  region: *r
  capabilities: *c
`,
			want: &File{
				Applications: []ApplicationCluster{
					{Name: "eu-1", Context: "eu-1", Spec: shipper.ClusterSpec{Region: "eu-west", Capabilities: []string{"gpu"}}},
					{Name: "eu-2", Context: "eu-2", Spec: shipper.ClusterSpec{Region: "eu-west", Capabilities: []string{"gpu"}}},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("clusters.yaml", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(ApplicationCluster{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an empty file": {
			text: "# nothing yet\n",
			want: `clusters.yaml is empty: list clusters under applicationClusters`,
		},
		"a file without application clusters": {
			text: "managementClusters:\n- name: m\n",
			want: `clusters.yaml:1: no clusters to join: list them under applicationClusters`,
		},
		"what is not YAML": {
			text: "applicationClusters: [\n",
			want: `clusters.yaml: yaml: line 1: did not find expected node content`,
		},
		"two documents": {
			text: "applicationClusters:\n- {name: a, region: r}\n---\na: b\n",
			want: "clusters.yaml: one document is expected; take out what follows `---`",
		},
		"a list at the top": {
			text: "- name: a\n",
			want: `clusters.yaml:1: clusters.yaml must be a mapping of keys to values`,
		},
		"unknown keys, each with its line and what is meant": {
			text: `
applicationCluster:
- name: ignored
applicationClusters:
- name: a
  regoin: r
  region: r
  apimaster: https://a
  weight: 10
  scheduler:
    unschedulabel: true
    colour: red
`,
			want: strings.Join([]string{
				`clusters.yaml:2: clusters.yaml has no field "applicationCluster"; is "applicationClusters" meant?`,
				`clusters.yaml:6: an application cluster has no field "regoin"; is "region" meant?`,
				`clusters.yaml:8: an application cluster has no field "apimaster"; is "apiMaster" meant?`,
				"clusters.yaml:9: an application cluster has no field \"weight\"; it belongs under `scheduler`",
				`clusters.yaml:11: a scheduler has no field "unschedulabel"; is "unschedulable" meant?`,
				`clusters.yaml:12: a scheduler has no field "colour"; there are: identity, unschedulable, weight`,
			}, "\n"),
		},
		"metrics without an address, and with a key that there is not": {
			text: "applicationClusters:\n- name: a\n  region: r\n  metrics: {secretname: prometheus}\n",
			want: `clusters.yaml:4: metrics has no field "secretname"; is "secretName" meant?` + "\n" +
				`clusters.yaml:4: metrics needs an address, for example https://prometheus.example.com`,
		},
		"both spellings of the management clusters": {
			text: "managementCluster: [{name: m}]\nmanagementClusters: [{name: m}]\napplicationClusters: [{name: a, region: r}]\n",
			want: `clusters.yaml:2: managementCluster and managementClusters mean the same: keep one`,
		},
		"a management cluster without a name, and one entry that is no list": {
			text: "managementClusters:\n- context: m\napplicationClusters:\n  name: a\n  region: r\n",
			want: "clusters.yaml:2: a management cluster needs a name\n" +
				"clusters.yaml:4: applicationClusters must be a list: start each entry with `- `",
		},
		"values of the wrong kind": {
			text: `
applicationClusters:
- name: a
  region: [r]
  capabilities: gpu
  scheduler:
    unschedulable: "yes"
    weight: 1.5
- name: b
  region: r
  capabilities: [gpu, gpu]
  scheduler: 5
`,
			want: strings.Join([]string{
				`clusters.yaml:4: a text is expected here`,
				"clusters.yaml:5: capabilities must be a list: start each entry with `- `",
				`clusters.yaml:7: true or false is expected here, not "yes"`,
				`clusters.yaml:8: a whole number is expected here, not "1.5"`,
				`clusters.yaml:3: application cluster "a" needs a region`,
				`clusters.yaml:11: "gpu" is listed twice`,
				`clusters.yaml:12: a scheduler must be a mapping of keys to values`,
			}, "\n"),
		},
		"a number beyond 32 bits, and a key given twice": {
			text: "applicationClusters:\n- name: a\n  name: b\n  region: r\n  scheduler: {weight: 4294967296}\n",
			want: "clusters.yaml:3: \"name\" is given twice\n" +
				`clusters.yaml:5: a whole number is expected here, not "4294967296"`,
		},
		"a cluster listed twice, and one without name or region": {
			text: "applicationClusters:\n- {name: a, region: r}\n- {name: a, region: r}\n- context: c\n",
			want: "clusters.yaml:4: an application cluster needs a name\n" +
				"clusters.yaml:4: application cluster \"\" needs a region\n" +
				`clusters.yaml:3: cluster "a" is listed already in line 2`,
		},
		"the name of a GKE context, and shows how to write it": {
			text: "applicationClusters:\n- name: gke_ACCOUNT_ZONE_1\n  region: r\n",
			want: "clusters.yaml:2: \"gke_ACCOUNT_ZONE_1\" cannot be the name of a Cluster object: use lower-case letters, digits, " +
				"'-' and '.'; the context keeps its own name:\n  - name: gke-account-zone-1\n    context: gke_ACCOUNT_ZONE_1",
		},
		"a name of which nothing can be kept": {
			text: "applicationClusters:\n- name: ___\n  context: c\n  region: r\n",
			want: "clusters.yaml:2: \"___\" cannot be the name of a Cluster object: use lower-case letters, digits, " +
				"'-' and '.'; the context keeps its own name:\n  - name: eu-1\n    context: c",
		},
		"an API server that is no URL": {
			text: "applicationClusters:\n- {name: a, region: r, apiMaster: \"10.0.0.1:6443\"}\n",
			want: `clusters.yaml:2: apiMaster of application cluster "a" is "10.0.0.1:6443": ` +
				`write a URL as in a kubeconfig, for example https://10.0.0.1:6443`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("clusters.yaml", []byte(c.text))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
