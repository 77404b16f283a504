// SPDX-License-Identifier: Apache-2.0

package chartcheck_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/cmd/shipperctl/chartcheck"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/test/charts"
)

// shop is a chart of the shapes that matter, each once.
var shop = map[string]string{
	"Chart.yaml":             "apiVersion: v2\nname: shop\nversion: 1.2.3\n",
	"values.yaml":            "replicas: 4\nclaim: ReadWriteOnce\nnamespace: null\n",
	".helmignore":            "templates/ignored.yaml\n",
	"templates/ignored.yaml": `{{ fail "this file is ignored" }}`,
	"templates/all.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-web"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: token}}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: files}
spec:
  selector: {matchLabels: {app: files}}
  template:
    metadata: {labels: {app: files}}
    spec: {containers: [{name: a, image: a}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: database}
spec:
  replicas: 3
  selector: {matchLabels: {app: database}}
  template: {metadata: {labels: {app: database}}, spec: {containers: [{name: a, image: a, envFrom: [{secretRef: {name: token}}]}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "{{ .Release.Name }}-web"}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [{{ .Values.claim }}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: {{ .Values.namespace }}}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: token}, stringData: {a: b}}
---
{apiVersion: v1, kind: Service, metadata: {name: "{{ .Release.Name }}"}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: next, labels: {shipper-lb: preview}}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: database}, spec: {clusterIP: None, selector: {app: database}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop}
rules:
- {apiGroups: [""], resources: [nodes, secrets], verbs: [list]}
- {apiGroups: [""], resources: [nodes/proxy], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: shop}}
---
apiVersion: v1
kind: Pod
metadata: {name: try, annotations: {helm.sh/hook: "test,post-install"}}
spec: {containers: [{name: a, image: a}]}
`,
}

const shopText = `Chart shop 1.2.3, named by Application

WORKLOAD               LOT            WHY                                     PODS   A STEP OF 50 %
Deployment shop-web    side by side                                           4      2 of 4 Pods beside those of the incumbent
Deployment files       in place       claim data can be mounted by one node   1      unchanged until the step of 100 %
StatefulSet database   in place       StatefulSet                             3      2 of 3 Pods replaced, the highest numbers first
Job migrate            side by side   a Job cannot be changed                        it runs when the Release is installed

SERVICE    MOVES
shop       Deployment shop-web
next       the contender of a preview
database   stays as it is: headless, for StatefulSet database

COPIED FOR EACH RELEASE   FOR THE PODS OF
Secret token              Deployment shop-web, StatefulSet database
ConfigMap settings        Deployment shop-web

HOOK      RUNS
Pod try   test, on request, post-install

RIGHT THAT SHIPPER LACKS BY DEFAULT      FOR
clusterroles.rbac.authorization.k8s.io   ClusterRole shop
servicemonitors.monitoring.coreos.com    ServiceMonitor shop

These grant rights that Shipper lacks by default: ClusterRole shop
Side by side with what they scale: HorizontalPodAutoscaler web
Shared by all Releases: 8 objects: 1 Secret, 1 ConfigMap, 1 PersistentVolumeClaim, 1 ClusterRole, 3 Services, 1 ServiceMonitor
! It takes rights to clusterroles.rbac.authorization.k8s.io: with them, each user who may write an Application can reach ` +
	`the whole cluster
! HorizontalPodAutoscaler web scales Deployment shop-web, which Shipper does too, step by step: ` +
	`leave it out of the chart, or disable it by a value
It rolls out unedited. First give Shipper the rights that it lacks, in each application cluster: ` +
	"--grant prints them for `kubectl apply -f -`." + `
`

// folder writes a chart.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "shop")
	for name, content := range files {
		write(t, filepath.Join(at, name), content)
	}
	return at
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs the command.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := chartcheck.NewCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCheckOfAFolder(t *testing.T) {
	got, err := run(t, folder(t, shop))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shopText, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCheckOfAnArchive(t *testing.T) {
	packed, err := charts.PackFiles("shop", "1.2.3", map[string]string{
		"Chart.yaml": shop["Chart.yaml"], "values.yaml": "replicas: 1",
		"templates/web.yaml": strings.Split(shop["templates/all.yaml"], "---\n")[0],
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.tgz")
	write(t, file, string(packed.Bytes))
	got, err := run(t, file, "--app-name=other")
	want := `Chart shop 1.2.3, named by Application

WORKLOAD               LOT            PODS   A STEP OF 50 %
Deployment other-web   side by side   1      1 of 1 Pods beside those of the incumbent

It rolls out unedited.
`
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
}

func TestCheckOfAChartInARepository(t *testing.T) {
	served := charts.Serve(t)
	for version, want := range map[string]string{"": "Chart nginx 0.0.2, ", "0.0.1": "Chart nginx 0.0.1, ", "~0.0.1": "Chart nginx 0.0.2, "} {
		got, err := run(t, "nginx", "--repo", served.URL, "--version", version, "--chart-repositories", "http://127.0.0.1:*")
		if err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%q: %v, want %s\n%s", version, err, want, got)
		}
	}
	if _, err := run(t, "nginx", "--repo", served.URL); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a repository that is not allowed: %v", err)
	}
}

// TestCheckOfAChartForTheOriginal is about charts that are named by Release.
func TestCheckOfAChartForTheOriginal(t *testing.T) {
	packed, err := charts.Get("nginx", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nginx.tgz")
	write(t, file, string(packed.Bytes))
	got, err := run(t, file)
	want := `Chart nginx 0.0.1, named by Release

WORKLOAD                   LOT            WHY                                          PODS   A STEP OF 50 %
Deployment RELEASE-nginx   side by side   the chart gives it the name of the Release   1      1 of 1 Pods beside those of the incumbent

SERVICE   MOVES
nginx     Deployment

It rolls out, by the rules for charts that put the name of the Release into theirs.
`
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
}

func TestValuesAreMergedInTheirOrder(t *testing.T) {
	chart, values := folder(t, shop), t.TempDir()
	first, second := filepath.Join(values, "first.yaml"), filepath.Join(values, "second.yaml")
	write(t, first, "replicas: 9\nclaim: ReadWriteMany\n")
	write(t, second, "replicas: 6\n")
	got, err := run(t, chart, "-f", first, "-f", second, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report chartcheck.Report
	if err := json.Unmarshal([]byte(got), &report); err != nil {
		t.Fatal(err)
	}
	want := []chartcheck.Workload{
		{Workload: "Deployment shop-web", Lot: "side by side", Pods: 6, Half: "3 of 6 Pods beside those of the incumbent"},
		{Workload: "Deployment files", Lot: "side by side", Pods: 1, Half: "1 of 1 Pods beside those of the incumbent"},
	}
	if diff := cmp.Diff(want, report.Workloads[:2]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsRefusedFails(t *testing.T) {
	chart, values := folder(t, shop), filepath.Join(t.TempDir(), "values.yaml")
	write(t, values, "namespace: elsewhere\nreplicas: many\n")
	got, err := run(t, chart, "-f", values)
	if err == nil || err.Error() != "chart shop 1.2.3 cannot be rolled out as it is" || cli.ExitCode(err) != cli.Failed {
		t.Errorf("%v", err)
	}
	for _, want := range []string{
		`refused: Deployment shop-web: spec.replicas is "many", which is not a number of Pods: change it by a value of the chart`,
		`refused: template shop/templates/all.yaml: ConfigMap "settings" asks for the namespace "elsewhere"`,
		"Deployment files",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "It rolls out") {
		t.Errorf("it is said to roll out:\n%s", got)
	}
}

// TestATemplateThatFailsIsRefused: nothing is known of what the chart has, but why.
func TestATemplateThatFailsIsRefused(t *testing.T) {
	files := map[string]string{"Chart.yaml": shop["Chart.yaml"], "templates/a.yaml": `{{ fail "set a password" }}`}
	got, err := run(t, folder(t, files))
	const why = "refused: chart \"shop\" 1.2.3: it does not render: "
	if err == nil || !strings.Contains(got, why) || !strings.Contains(got, "set a password") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestGrantIsWhatIsLacked(t *testing.T) {
	got, err := run(t, folder(t, shop), "--grant")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(got), &role); err != nil {
		t.Fatal(err)
	}
	all := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	want := []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"nodes/proxy"}, Verbs: []string{"get"}},
		{APIGroups: []string{"monitoring.coreos.com"}, Resources: []string{"servicemonitors"}, Verbs: all},
	}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if role.Name != "shipper-shop" || role.Labels["shipper.booking.com/aggregate-to-application"] != "true" {
		t.Errorf("%s %v", role.Name, role.Labels)
	}
}

func TestMisuse(t *testing.T) {
	chart := folder(t, shop)
	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"no chart":            {[]string{"nowhere"}, cli.Failed, `reading the chart: there is no folder or archive "nowhere"; --repo URL `},
		"no name":             {[]string{chart, "--app-name=A_b"}, cli.Misused, `--app-name: "A_b" cannot be the name of an Application: `},
		"a version of a file": {[]string{chart, "--version=1"}, cli.Misused, "--version is for charts of a --repo"},
		"no policy":           {[]string{"a", "--repo=https://a.example", "--chart-repositories=:"}, cli.Misused, "--chart-repositories: "},
		"no values":           {[]string{chart, "-f", "nowhere"}, cli.Failed, "reading values: "},
		"values of one value": {[]string{chart, "-f", filepath.Join(chart, "templates/ignored.yaml")}, cli.Failed, "reading values from "},
		"no archive":          {[]string{filepath.Join(chart, "values.yaml")}, cli.Failed, "the chart's archive cannot be used: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, tc.args...)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || cli.ExitCode(err) != tc.code || out != "" {
				t.Errorf("%v, want %s; %s", err, tc.want, out)
			}
		})
	}
}
